// Multi-head attention against loops in double that know nothing of views, blocks of heads or fused products.
#include <gtest/gtest.h>

#include <cmath>

#include "nn/attention.h"
#include "tests/errors.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;

using Matrix = std::vector<std::vector<double>>;  // [rows][columns]

Matrix drawn(Index rows, Index columns, std::uint64_t seed) {
  const rng::Stream random(seed, rng::Purpose::check);
  Matrix m(static_cast<std::size_t>(rows), std::vector<double>(static_cast<std::size_t>(columns)));
  std::uint64_t i = 0;
  for (auto& row : m)
    for (double& x : row) x = static_cast<Real>(random.normal(i++));
  return m;
}

Tensor on_tape(Tape& tape, const Matrix& m) {
  std::vector<Real> flat;
  for (const auto& row : m) flat.insert(flat.end(), row.begin(), row.end());
  return tape.input({static_cast<Index>(m.size()), static_cast<Index>(m[0].size())}, flat);
}

// x W^T + b
Matrix projected(const Matrix& x, const Linear& layer, const ParameterSet& set) {
  const auto w = set.value(layer.weight);
  const std::size_t in = x[0].size(), out = w.size() / in;
  Matrix y;
  for (const auto& row : x) {
    std::vector<double> result(out);
    for (std::size_t o = 0; o < out; ++o) {
      if (layer.bias) result[o] = double{set.value(layer.bias)[o]};
      for (std::size_t i = 0; i < in; ++i) result[o] += double{w[o * in + i]} * row[i];
    }
    y.push_back(result);
  }
  return y;
}

Matrix reference(const MultiHeadAttention& m, const ParameterSet& set, const Matrix& x, const Matrix& source,
                 bool causal, double temperature) {
  const Matrix q = projected(x, m.q, set), k = projected(source, m.k, set), v = projected(source, m.v, set);
  const std::size_t width = q[0].size(), heads = static_cast<std::size_t>(m.heads), d = width / heads;
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
  for (const Linear* layer : {&m.q, &m.k, &m.v, &m.o})
    if (layer->bias) init.fill_normal(layer->bias, 0.3);

  const Matrix x = drawn(s.queries, s.width, 1), source = s.sources ? drawn(s.sources, s.source_width, 2) : x;
  Tape tape(set);
  Mask mask;
  mask.causal = s.causal;
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

TEST(MultiHeadAttention, ScalesByTheWidthOfAHead_F09) {
  // Width 8 and 4 heads; queries and keys are the input itself, values and output too, so all is known by hand.
  ParameterSet set;
  Initialiser init(set, 1);
  const MultiHeadAttention m = MultiHeadAttention::make(init, {.width = 8, .heads = 4, .bias = false});
  for (const Linear* layer : {&m.q, &m.k, &m.v, &m.o})
    for (Index i = 0; i < 64; ++i) set.value(layer->weight)[static_cast<std::size_t>(i)] = i % 9 == 0 ? 1 : 0;
  Tape tape(set);
  tape.keep_weights = true;
  m(tape.input({2, 8}, {1, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}));
  const std::vector<Real> weights = tape.find("attention.weights").at(0).values();  // [4, 2, 2]
  // Head 0 holds columns 0 and 1: row 0 has the scores 2 / sqrt(2) and 2 / sqrt(2), row 1 has 2 / sqrt(2) and
  // 4 / sqrt(2).
  EXPECT_NEAR(weights[0], 0.5, 1e-6);
  EXPECT_NEAR(weights[3], 1 / (1 + std::exp(-2 / std::sqrt(2.0))), 1e-6);
}

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
}

}  // namespace
}  // namespace tapehead
