// Multi-head attention against loops in double that know nothing of views, blocks of heads or fused products.
#include <gtest/gtest.h>

#include <cmath>

#include "nn/attention.h"
#include "nn/transformer.h"
#include "tests/errors.h"
#include "tests/nn/small_module.h"

namespace tapehead {
namespace {

using namespace test;

Matrix reference(const MultiHeadAttention& m, const ParameterSet& set, const Matrix& x, const Matrix& source,
                 bool causal, double temperature) {
  const Matrix q = projected(x, m.q, set), k = projected(source, m.k, set), v = projected(source, m.v, set);
  const std::size_t width = q[0].size(), heads = static_cast<std::size_t>(m.options.heads), d = width / heads;
  Matrix merged(x.size(), std::vector<double>(width));
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t t = 0; t < x.size(); ++t) {
      std::vector<double> weights;
      double total = 0;
      for (std::size_t s = 0; s < (causal ? t + 1 : source.size()); ++s) {
        double dot = 0;
        for (std::size_t c = h * d; c < (h + 1) * d; ++c) dot += q[t][c] * k[s][c];
        weights.push_back(std::exp(dot / std::sqrt(static_cast<double>(d)) / temperature));
        total += weights.back();
      }
      for (std::size_t s = 0; s < weights.size(); ++s)
        for (std::size_t c = h * d; c < (h + 1) * d; ++c) merged[t][c] += weights[s] / total * v[s][c];
    }
  return projected(merged, m.o, set);
}

struct Setting {
  Index width, source_width, heads, queries, sources;
  bool causal = false, bias = true;
  double temperature = 1;
};

void check(const Setting& s) {
  ParameterSet set;
  Initialiser init(set, 7);
  MultiHeadAttention::Options options;
  options.width = s.width;
  options.source_width = s.source_width;
  options.heads = s.heads;
  options.bias = s.bias;
  options.temperature = static_cast<Real>(s.temperature);
  options.std = options.output_std = 0.4;
  const MultiHeadAttention m = MultiHeadAttention::make(init, options);
  for (const Projection* layer : {&m.q, &m.k, &m.v, &m.o})
    if (layer->bias) init.fill_normal(layer->bias, 0.3);

  const Matrix x = drawn(s.queries, s.width, 1), source = s.sources ? drawn(s.sources, s.source_width, 2) : x;
  Tape tape(set);
  const Mask mask = s.causal ? Mask::causal() : Mask();
  const Tensor input = on_tape(tape, x);
  const Tensor y = s.sources ? m(input, on_tape(tape, source)) : m(input, mask);
  const Matrix expected = reference(m, set, x, source, s.causal, s.temperature);
  ASSERT_EQ(y.shape().str(), Shape({s.queries, s.width}).str());
  const std::vector<Real> got = y.values();
  for (std::size_t t = 0; t < expected.size(); ++t)
    for (std::size_t c = 0; c < expected[t].size(); ++c)
      ASSERT_NEAR(got[t * expected[t].size() + c], expected[t][c], sizeof(Real) == 8 ? 1e-12 : 2e-5)
          << "row " << t << ", column " << c << ", " << s.heads << " heads";
}

TEST(MultiHeadAttention, OfASequenceToItselfIsTheNaiveLoops) {
  for (Index heads : {1, 2, 3, 6, 12}) check({12, 12, heads, 5, 0});
  check({12, 12, 3, 5, 0, true});
  check({12, 12, 3, 5, 0, true, false});
  check({12, 12, 3, 1, 0});
  check({12, 12, 3, 5, 0, false, true, 0.5});
}

TEST(MultiHeadAttention, OfASequenceToAnotherIsTheNaiveLoops) {
  check({12, 12, 3, 4, 7});
  check({12, 20, 3, 4, 7});  // a source of another width
  check({12, 5, 4, 7, 2, false, false});
  check({12, 5, 2, 1, 1});
}

// The weights [4, 2, 2] of width 8 and 4 heads; queries and keys are the input itself, values and output too. Head 0
// holds columns 0 and 1: row 0 has the dot products 2 and 2, row 1 has 2 and 4.
std::vector<Real> weights_by_hand(Real scale) {
  ParameterSet set;
  Initialiser init(set, 1);
  const MultiHeadAttention m = MultiHeadAttention::make(init, {.width = 8, .heads = 4, .bias = false, .scale = scale});
  for (const Projection* layer : {&m.q, &m.k, &m.v, &m.o})
    for (Index i = 0; i < 64; ++i) set.value(layer->weight)[static_cast<std::size_t>(i)] = i % 9 == 0 ? 1 : 0;
  Tape tape(set);
  tape.keep_weights = true;
  m(tape.input({2, 8}, {1, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}));
  return tape.find("attention.weights").at(0).values();
}

TEST(MultiHeadAttention, ScalesByTheWidthOfAHead_F09) {
  const std::vector<Real> weights = weights_by_hand(0);
  EXPECT_NEAR(weights[0], 0.5, 1e-6);
  EXPECT_NEAR(weights[3], 1 / (1 + std::exp(-2 / std::sqrt(2.0))), 1e-6);
}

TEST(MultiHeadAttention, TakesAScaleOfItsOwn) { EXPECT_NEAR(weights_by_hand(1)[3], 1 / (1 + std::exp(-2.0)), 1e-6); }

TEST(MultiHeadAttention, RefusesHeadsThatDoNotDivideTheWidth_F51) {
  ParameterSet set;
  Initialiser init(set, 1);
  for (const auto& [width, heads] : {std::pair<Index, Index>{128, 12}, {2, 8}, {8, 0}, {8, -2}, {0, 1}}) {
    MultiHeadAttention::Options options;
    options.width = width;
    options.heads = heads;
    const std::string message = error_of<ShapeError>([&] { MultiHeadAttention::make(init, options); });
    EXPECT_TRUE(contains(message, "width " + std::to_string(width)) &&
                contains(message, std::to_string(heads) + " heads"))
        << message;
  }
  EXPECT_EQ(set.size(), 0) << "something was made before the refusal";
  ModelConfig config;
  config.width = 64, config.heads = 3, config.vocabulary = 5, config.context = 4;
  EXPECT_TRUE(contains(error_of<ShapeError>([&] { Model(config, 1); }), "width 64 is not divisible by 3 heads"));
}

// --- heads

TEST(Heads, OfTheirOwnWidthsHaveMatricesToMatch) {
  ParameterSet set;
  Initialiser init(set, 1);
  const MultiHeadAttention m = MultiHeadAttention::make(
      init, {.width = 10, .source_width = 6, .heads = 4, .kv_heads = 2, .key_width = 3, .value_width = 5});
  EXPECT_EQ(m.q.weight.shape, (Shape{12, 10}));
  EXPECT_EQ(m.k.weight.shape, (Shape{6, 6}));
  EXPECT_EQ(m.v.weight.shape, (Shape{10, 6}));
  EXPECT_EQ(m.o.weight.shape, (Shape{10, 20}));
  Tape tape(set);
  EXPECT_EQ(m(on_tape(tape, drawn(3, 10, 1)), on_tape(tape, drawn(4, 6, 2))).shape(), (Shape{3, 10}));
}

// With two heads of keys and values for four of queries: as four whose keys and values are equal in pairs.
TEST(Heads, OfAGroupShareKeysAndValues) {
  MultiHeadAttention::Options few = sharing({}), all = sharing({});
  few.heads = all.heads = 4;
  few.kv_heads = 2;
  Computed grouped(few), whole(all);
  const auto twice = [](const Matrix& m) {  // each head's two rows
    Matrix out;
    for (std::size_t head = 0; head < 2; ++head)
      for (int copy = 0; copy < 2; ++copy)
        out.insert(out.end(), m.begin() + 2 * static_cast<long>(head), m.begin() + 2 * static_cast<long>(head) + 2);
    return out;
  };
  whole.fill(whole.module.q.weight, grouped.value(grouped.module.q.weight));
  whole.fill(whole.module.k.weight, twice(grouped.value(grouped.module.k.weight)));
  whole.fill(whole.module.v.weight, twice(grouped.value(grouped.module.v.weight)));
  whole.fill(whole.module.o.weight, grouped.value(grouped.module.o.weight));
  expect_same_output(grouped, whole);
}

// A pruned head is as good as one whose columns of W_O are zero.
TEST(Heads, ArePrunedByTheirMask) {
  Computed masked(sharing({})), zeroed(sharing({}));
  masked.module.head_mask = {1, 0};
  Matrix o = zeroed.value(zeroed.module.o.weight);
  for (auto& row : o) std::fill(row.begin() + 4, row.end(), 0.0);
  zeroed.fill(zeroed.module.o.weight, o);
  expect_same_output(masked, zeroed);
}

// --- scoring

TEST(Scoring, ByCosineIsScaledByALearnedNumber) {
  MultiHeadAttention::Options options = sharing({});
  options.scoring = ScoringKind::cosine;
  options.context = 8;
  Computed run(options);
  EXPECT_NEAR(run.set.value(run.module.scale)[1], std::log2(56.0), 1e-5);  // log2(L^2 - L), L = 8
  run.fill(run.module.scale, {{2}, {3}});
  Tape tape(run.set);
  tape.keep_weights = true;
  const Matrix x = drawn(5, 8, 1);
  run.module(on_tape(tape, x));
  const std::vector<Real> scores = tape.find("attention.scores").at(0).values();  // [2, 5, 5]
  const Matrix q = projected(x, run.module.q, run.set), k = projected(x, run.module.k, run.set);
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t t = 0; t < 5; ++t)
      for (std::size_t s = 0; s < 5; ++s) {
        double qk = 0, qq = 0, kk = 0;
        for (std::size_t c = 4 * h; c < 4 * h + 4; ++c) {
          qk += q[t][c] * k[s][c];
          qq += q[t][c] * q[t][c];
          kk += k[s][c] * k[s][c];
        }
        const double expected = (h == 0 ? 2 : 3) * qk / std::sqrt(qq * kk);
        EXPECT_NEAR(scores[(h * 5 + t) * 5 + s], expected, sizeof(Real) == 8 ? 1e-12 : 1e-5);
      }
}

TEST(Scoring, ByAdditionIsBahdanausFormula) {
  MultiHeadAttention::Options options = sharing({});
  options.scoring = ScoringKind::additive;
  Computed run(options);
  Tape tape(run.set);
  tape.keep_weights = true;
  const Matrix x = drawn(5, 8, 1), source = drawn(6, 8, 3);
  run.module(on_tape(tape, x), on_tape(tape, source));
  const std::vector<Real> scores = tape.find("attention.scores").at(0).values();  // [2, 5, 6]
  const Matrix q = projected(x, run.module.q, run.set), k = projected(source, run.module.k, run.set);
  const auto vector = run.set.value(run.module.score);  // [2, 1, 4]
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t t = 0; t < 5; ++t)
      for (std::size_t s = 0; s < 6; ++s) {
        double expected = 0;
        for (std::size_t c = 0; c < 4; ++c)
          expected += double{vector[h * 4 + c]} * std::tanh(q[t][h * 4 + c] + k[s][h * 4 + c]);
        EXPECT_NEAR(scores[(h * 5 + t) * 6 + s], expected, sizeof(Real) == 8 ? 1e-12 : 1e-5);
      }
}

}  // namespace
}  // namespace tapehead
