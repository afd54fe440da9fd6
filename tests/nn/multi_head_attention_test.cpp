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
Matrix projected(const Matrix& x, const Projection& layer, const ParameterSet& set) {
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

TEST(MultiHeadAttention, ScalesByTheWidthOfAHead_F09) {
  // Width 8 and 4 heads; queries and keys are the input itself, values and output too, so all is known by hand.
  ParameterSet set;
  Initialiser init(set, 1);
  const MultiHeadAttention m = MultiHeadAttention::make(init, {.width = 8, .heads = 4, .bias = false});
  for (const Projection* layer : {&m.q, &m.k, &m.v, &m.o})
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

// --- learned matrices that are shared: the same numbers as with matrices of their own, and gradients that are the sum
// over the uses.

struct Computed {
  ParameterSet set;
  MultiHeadAttention module;

  explicit Computed(const MultiHeadAttention::Options& options) {
    Initialiser init(set, 7);
    module = MultiHeadAttention::make(init, options);
  }
  Matrix value(const Parameter& p) { return as_matrix(p, set.value(p)); }
  Matrix grad(const Parameter& p) { return as_matrix(p, set.grad(p)); }
  void fill(const Parameter& p, const Matrix& m) {
    auto to = set.value(p).begin();
    for (const auto& row : m)
      for (const double x : row) *to++ = static_cast<Real>(x);
  }
  /// The output for a fixed input; gradients of a fixed loss.
  std::vector<Real> output_and_gradients() {
    Tape tape(set);
    const Tensor y = module(on_tape(tape, drawn(5, 8, 1)), Mask::causal());
    tape.backward(sum(y * on_tape(tape, drawn(5, 8, 2))));
    return y.values();
  }

 private:
  static Matrix as_matrix(const Parameter& p, std::span<Real> numbers) {
    const auto rows = static_cast<std::size_t>(p.shape[0]), columns = numbers.size() / rows;
    Matrix m(rows, std::vector<double>(columns));
    for (std::size_t i = 0; i < numbers.size(); ++i) m[i / columns][i % columns] = double{numbers[i]};
    return m;
  }
};

Matrix combined(const Matrix& a, double factor, const Matrix& b) {  // a + factor b
  Matrix c = a;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[i].size(); ++j) c[i][j] += factor * b[i][j];
  return c;
}
Matrix transposed(const Matrix& a) {
  Matrix t(a[0].size(), std::vector<double>(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[i].size(); ++j) t[j][i] = a[i][j];
  return t;
}
Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.size(), std::vector<double>(b[0].size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < b.size(); ++k)
      for (std::size_t j = 0; j < b[0].size(); ++j) c[i][j] += a[i][k] * b[k][j];
  return c;
}
Matrix stacked(const Matrix& one, std::size_t copies) {
  Matrix all;
  for (std::size_t i = 0; i < copies; ++i) all.insert(all.end(), one.begin(), one.end());
  return all;
}
Matrix summed_blocks(const Matrix& all, std::size_t rows) {
  Matrix one(rows, std::vector<double>(all[0].size()));
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < all[i].size(); ++j) one[i % rows][j] += all[i][j];
  return one;
}

void expect_equal(const Matrix& a, const Matrix& b, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[i].size(); ++j)
      ASSERT_NEAR(a[i][j], b[i][j], sizeof(Real) == 8 ? 1e-12 : 1e-4) << what << ' ' << i << ' ' << j;
}

MultiHeadAttention::Options sharing(std::vector<std::string> share) {
  MultiHeadAttention::Options o;
  o.width = 8;
  o.heads = 2;
  o.bias = false;
  o.std = o.output_std = 0.5;
  o.share = std::move(share);
  return o;
}

/// A module with matrices of its own that hold q, k, v and o, and what it computes.
Computed separate(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& o) {
  Computed run(sharing({}));
  run.fill(run.module.q.weight, q), run.fill(run.module.k.weight, k);
  run.fill(run.module.v.weight, v), run.fill(run.module.o.weight, o);
  return run;
}

void expect_same_output(Computed& a, Computed& b) {
  const std::vector<Real> x = a.output_and_gradients(), y = b.output_and_gradients();
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], sizeof(Real) == 8 ? 1e-13 : 1e-5) << i;
}

TEST(SharedMatrices, OfQueriesAndKeysAddTheirGradients) {
  Computed run(sharing({"q=k"}));
  EXPECT_EQ(parameter_count(run.module), 3 * 64);
  const Matrix q = run.value(run.module.q.weight);
  Computed own = separate(q, q, run.value(run.module.v.weight), run.value(run.module.o.weight));
  expect_same_output(run, own);
  const MultiHeadAttention& m = own.module;
  expect_equal(run.grad(run.module.q.weight), combined(own.grad(m.q.weight), 1, own.grad(m.k.weight)), "q");
}

TEST(SharedMatrices, OfKeysValuesAndOutputAddTheirGradients) {
  Computed run(sharing({"k=v", "v=o"}));
  EXPECT_EQ(parameter_count(run.module), 2 * 64);
  const Matrix k = run.value(run.module.k.weight);
  Computed own = separate(run.value(run.module.q.weight), k, k, k);
  expect_same_output(run, own);
  const MultiHeadAttention& m = own.module;
  const Matrix two = combined(own.grad(m.k.weight), 1, own.grad(m.v.weight));
  expect_equal(run.grad(run.module.k.weight), combined(two, 1, own.grad(m.o.weight)), "k");
}

TEST(SharedMatrices, OfTheOutputAndTheTransposedQueriesAddTheirGradients) {
  Computed run(sharing({"o=qT"}));
  EXPECT_EQ(parameter_count(run.module), 3 * 64);
  const Matrix q = run.value(run.module.q.weight);
  Computed own = separate(q, run.value(run.module.k.weight), run.value(run.module.v.weight), transposed(q));
  expect_same_output(run, own);
  const MultiHeadAttention& m = own.module;
  expect_equal(run.grad(run.module.q.weight), combined(own.grad(m.q.weight), 1, transposed(own.grad(m.o.weight))), "q");
}

TEST(SharedMatrices, OfQueriesAndScaledKeysLearnTheScale) {
  Computed run(sharing({"k=aq"}));
  EXPECT_EQ(parameter_count(run.module), 3 * 64 + 1);
  run.fill(run.module.k.factor, {{-0.7}});
  const double a = double{run.set.value(run.module.k.factor)[0]};
  const Matrix q = run.value(run.module.q.weight);
  const Matrix k = combined(q, a - 1, q);
  Computed own = separate(q, k, run.value(run.module.v.weight), run.value(run.module.o.weight));
  expect_same_output(run, own);
  const MultiHeadAttention& m = own.module;
  expect_equal(run.grad(run.module.q.weight), combined(own.grad(m.q.weight), a, own.grad(m.k.weight)), "q");
  double along = 0;
  const Matrix dk = own.grad(m.k.weight);
  for (std::size_t i = 0; i < q.size(); ++i)
    for (std::size_t j = 0; j < q[i].size(); ++j) along += dk[i][j] * q[i][j];
  EXPECT_NEAR(run.set.grad(run.module.k.factor)[0], along, sizeof(Real) == 8 ? 1e-12 : 1e-4);
}

TEST(SharedMatrices, OfAllHeadsAddTheirGradients) {
  Computed run(sharing({"heads"}));
  EXPECT_EQ(parameter_count(run.module), 3 * 32 + 64);  // one [4, 8] for both heads
  const auto both = [&](const Projection& p) { return stacked(run.value(p.weight), 2); };
  Computed own = separate(both(run.module.q), both(run.module.k), both(run.module.v), run.value(run.module.o.weight));
  expect_same_output(run, own);
  const MultiHeadAttention& m = own.module;
  expect_equal(run.grad(run.module.q.weight), summed_blocks(own.grad(m.q.weight), 4), "q");
  expect_equal(run.grad(run.module.v.weight), summed_blocks(own.grad(m.v.weight), 4), "v");
}

TEST(SharedMatrices, OfLowRankAreTheirProduct) {
  for (const std::vector<std::string>& share : {std::vector<std::string>{}, {"o=qT"}}) {
    MultiHeadAttention::Options options = sharing(share);
    options.rank = 3;
    Computed run(options);
    EXPECT_EQ(parameter_count(run.module), (share.empty() ? 4 : 3) * 2 * 3 * 8);
    const auto whole = [&](const Projection& p) { return product(run.value(p.weight), run.value(p.down)); };
    const Matrix q = whole(run.module.q), o = share.empty() ? whole(run.module.o) : transposed(q);
    Computed own = separate(q, whole(run.module.k), whole(run.module.v), o);
    expect_same_output(run, own);
    const MultiHeadAttention& m = own.module;
    Matrix dq = own.grad(m.q.weight);
    if (!share.empty()) dq = combined(dq, 1, transposed(own.grad(m.o.weight)));
    expect_equal(run.grad(run.module.q.weight), product(dq, transposed(run.value(run.module.q.down))), "weight");
    expect_equal(run.grad(run.module.q.down), product(transposed(run.value(run.module.q.weight)), dq), "down");
  }
}

TEST(SharedMatrices, OfOtherShapesAreRefused) {
  const auto refusal = [](std::vector<std::string> share, auto change) {
    MultiHeadAttention::Options options = sharing(std::move(share));
    change(options);
    ParameterSet set;
    Initialiser init(set, 1);
    return error_of<ShapeError>([&] { MultiHeadAttention::make(init, options); });
  };
  EXPECT_TRUE(contains(refusal({"q=k"}, [](auto& o) { o.kv_heads = 1; }), "share q=k"));
  EXPECT_TRUE(contains(refusal({"q=k"}, [](auto& o) { o.source_width = 5; }), "share q=k"));
  EXPECT_TRUE(contains(refusal({"k=v"}, [](auto& o) { o.value_width = 3; }), "share k=v"));
  EXPECT_TRUE(contains(refusal({"v=o"}, [](auto& o) { o.value_width = 3; }), "share v=o"));
  EXPECT_TRUE(contains(refusal({"o=qT"}, [](auto& o) { o.value_width = 3; }), "share o=qT"));
  EXPECT_TRUE(contains(refusal({}, [](auto& o) { o.heads = 4, o.kv_heads = 3; }), "4 heads cannot share 3"));
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
