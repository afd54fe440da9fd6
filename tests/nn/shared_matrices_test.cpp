// Learned matrices that are shared: the same numbers as with matrices of their own, and gradients that are the sum over
// the uses.
#include <gtest/gtest.h>

#include "nn/attention.h"
#include "tests/errors.h"
#include "tests/nn/small_module.h"

namespace tapehead {
namespace {

using namespace test;

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

/// A module with matrices of its own that hold q, k, v and o, and what it computes.
Computed separate(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& o) {
  Computed run(sharing({}));
  run.fill(run.module.q.weight, q), run.fill(run.module.k.weight, k);
  run.fill(run.module.v.weight, v), run.fill(run.module.o.weight, o);
  return run;
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

// W_O made of the one W_V of all heads, beside biases: q, k and v have one for all heads, the output one of its own.
TEST(SharedMatrices, OfAllHeadsAndTheOutputKeepTheirBiases) {
  // With heads as wide as the model W_O has as many outputs as one head has.
  for (const auto& [as, wide] : {std::pair("v=o", false), {"o=qT", false}, {"o=qT", true}}) {
    MultiHeadAttention::Options options = sharing({"heads", as}), plain = sharing({});
    options.bias = plain.bias = true;
    if (wide) options.key_width = options.value_width = plain.key_width = plain.value_width = options.width;
    Computed run(options), own(plain);
    const auto both = [&](const Parameter& p) { return stacked(run.value(p), 2); };
    const MultiHeadAttention &m = run.module, &to = own.module;
    Initialiser init(run.set, 9);
    for (const Projection* p : {&m.q, &m.k, &m.v, &m.o}) init.fill_normal(p->bias, 0.3);
    own.fill(to.q.weight, both(m.q.weight)), own.fill(to.k.weight, both(m.k.weight));
    own.fill(to.v.weight, both(m.v.weight));
    own.fill(to.o.weight, as[0] == 'v' ? both(m.v.weight) : transposed(both(m.q.weight)));
    own.fill(to.q.bias, both(m.q.bias)), own.fill(to.k.bias, both(m.k.bias)), own.fill(to.v.bias, both(m.v.bias));
    own.fill(to.o.bias, run.value(m.o.bias));
    expect_same_output(run, own);
    expect_equal(run.grad(m.o.bias), own.grad(to.o.bias), "bias of the output");
  }
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

}  // namespace
}  // namespace tapehead
