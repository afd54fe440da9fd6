// The lesson on attention, number by number and rule by rule: mixtures, three positions by hand, what moves what,
// masks, temperature, and why scores are divided by sqrt(d_k).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "autograd/attention.h"
#include "autograd/error.h"
#include "autograd/rng.h"
#include "tests/errors.h"

namespace tapehead {
namespace {

using test::error_of;
using Reals = std::vector<Real>;

constexpr double kRounding = sizeof(Real) == 8 ? 1e-12 : 2e-6;

Reals normals(Index count, std::uint32_t stream) {
  const rng::Stream random(21, rng::Purpose::check, stream);
  Reals x;
  for (Index i = 0; i < count; ++i) x.push_back(static_cast<Real>(random.normal(static_cast<std::uint64_t>(i))));
  return x;
}

struct Result {
  Reals output, weights;
};

/// One call of attention on matrices q [T, D], k [S, D], v [S, Dv].
struct Call {
  Index T, S, D, Dv;
  Reals q = normals(T * D, 0), k = normals(S * D, 1), v = normals(S * Dv, 2);

  Result operator()(Attention options = {}, const std::vector<char>& allowed = {}) const {
    Tape tape;
    if (!allowed.empty()) {  // [T, S]
      bool* flags = tape.scratch<bool>(T * S);
      std::copy(allowed.begin(), allowed.end(), flags);
      options.mask = options.mask & Mask::allow(tape.bools({T, S}, {flags, allowed.size()}));
    }
    options.keep_weights = true;
    const Tensor y = attention(tape.input({T, D}, q), tape.input({S, D}, k), tape.input({S, Dv}, v), options);
    return {y.values(), tape.find("attention.weights").at(0).values()};
  }
};

/// The lesson's keys [1, 0], [0, 1], [1, 1] and values; as queries the keys themselves, or [1, 0] alone.
const Reals kKeys{1, 0, 0, 1, 1, 1}, kValues{1, 0, 0, 2, 2, 1};
Call three_positions() { return {3, 3, 2, 2, kKeys, kKeys, kValues}; }
Call one_query() { return {1, 3, 2, 2, {1, 0}, kKeys, kValues}; }

void expect_near(const Reals& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
}

Reals row(const Reals& x, Index width, Index t) { return {x.begin() + t * width, x.begin() + (t + 1) * width}; }

// --- 1. a weighted mixture

TEST(Lesson, MixesValuesByWeights) {
  Tape tape;
  const Tensor a = tape.input({1, 3}, {Real(0.2), Real(0.3), Real(0.5)}), v = tape.input({3, 2}, kValues);
  expect_near(matmul(a, v).values(), {1.2, 1.1}, kRounding);
}

// --- 3. one query all the way through

TEST(Lesson, ComputesOneQueryByHand) {
  const double e = std::exp(1 / std::sqrt(2.0)), total = 2 * e + 1;
  const Result r = one_query()();
  expect_near(r.weights, {e / total, 1 / total, e / total}, kRounding);
  expect_near(r.weights, {0.4011, 0.1978, 0.4011}, 5e-5);
  expect_near(r.output, {3 * e / total, (2 + e) / total}, kRounding);
  expect_near(r.output, {1.2033, 0.7967}, 5e-5);
}

TEST(Lesson, ScalesTheScores) {
  Tape tape;
  const Tensor scores =
      scale(matmul(tape.input({1, 2}, {1, 0}), transpose(tape.input({3, 2}, kKeys))), Real(1 / std::sqrt(2.0)));
  expect_near(scores.values(), {0.7071, 0, 0.7071}, 5e-5);
}

/// A point lies in the hull of others when no direction has it beyond all of them.
TEST(Lesson, KeepsTheOutputWithinTheValuesHull) {
  const Call call{5, 4, 3, 3};
  const Reals y = call().output;
  const Reals directions = normals(3 * 200, 3);
  for (Index i = 0; i < 200; ++i) {
    const auto along = [&](const Reals& x, Index at) {
      return std::inner_product(x.begin() + 3 * at, x.begin() + 3 * at + 3, directions.begin() + 3 * i, 0.0);
    };
    double furthest = along(call.v, 0);
    for (Index s = 1; s < 4; ++s) furthest = std::max(furthest, along(call.v, s));
    for (Index t = 0; t < 5; ++t) EXPECT_LE(along(y, t), furthest + kRounding);
  }
}

TEST(Lesson, GivesPositiveWeightsThatSumToOne) {
  const Reals w = Call{5, 4, 3, 3}().weights;
  for (Index t = 0; t < 5; ++t) {
    const Reals of_row = row(w, 4, t);
    EXPECT_NEAR(std::accumulate(of_row.begin(), of_row.end(), 0.0), 1, kRounding);
    EXPECT_GT(*std::min_element(of_row.begin(), of_row.end()), 0);
  }
}

TEST(Lesson, ChangingOnlyValuesLeavesTheWeights) {
  Call call{4, 5, 3, 2};
  const Result before = call();
  for (Real& v : call.v) v = 3 - 2 * v;
  const Result after = call();
  EXPECT_EQ(after.weights, before.weights);
  EXPECT_NE(after.output, before.output);
}

TEST(Lesson, ChangingOneKeyMovesEveryWeightOfEachRow) {
  Call call{4, 5, 3, 2};
  const Reals before = call().weights;
  call.k[2 * 3 + 1] += Real(0.5);
  const Reals after = call().weights;
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_GT(std::abs(after[i] - before[i]), 1e-4) << i;
}

TEST(Lesson, ChangingOneQueryMovesItsRowAlone) {
  Call call{4, 5, 3, 2};
  const Result before = call();
  call.q[2 * 3] += Real(0.5);
  const Result after = call();
  for (Index t = 0; t < 4; ++t) {
    EXPECT_EQ(row(after.weights, 5, t) == row(before.weights, 5, t), t != 2) << t;
    EXPECT_EQ(row(after.output, 2, t) == row(before.output, 2, t), t != 2) << t;
  }
}

// --- 4. every query a row

TEST(Lesson, OutputFollowsQueriesInLengthAndValuesInWidth) {
  for (const auto& [T, S] : {std::pair<Index, Index>{2, 5}, {5, 2}, {1, 4}, {4, 1}}) {
    const Result r = Call{T, S, 2, 3}();
    EXPECT_EQ(r.output.size(), static_cast<std::size_t>(T * 3));
    EXPECT_EQ(r.weights.size(), static_cast<std::size_t>(T * S));
  }
}

TEST(Lesson, RefusesWidthsAndLengthsThatDiffer) {
  Tape tape;
  const auto zeros = [&](Index rows, Index columns) {
    return tape.input({rows, columns}, Reals(static_cast<std::size_t>(rows * columns)));
  };
  const auto line = [&](Tensor q, Tensor k, Tensor v) { return error_of<ShapeError>([&] { attention(q, k, v); }); };
  const std::string widths = line(zeros(2, 3), zeros(4, 5), zeros(4, 1));
  EXPECT_TRUE(widths.starts_with("[attention] ")) << widths;
  EXPECT_NE(widths.find("[2, 3]"), std::string::npos) << widths;
  EXPECT_NE(widths.find("[4, 5]"), std::string::npos) << widths;
  const std::string lengths = line(zeros(2, 3), zeros(4, 3), zeros(5, 1));
  EXPECT_NE(lengths.find("[4, 3]"), std::string::npos) << lengths;
  EXPECT_NE(lengths.find("[5, 1]"), std::string::npos) << lengths;
  EXPECT_NO_THROW(attention(zeros(2, 3), zeros(4, 3), zeros(4, 1)));
}

TEST(Lesson, RefusesAQueryWithoutVisibleKey) {
  const std::string line = error_of<ShapeError>([] {
    three_positions()({}, {true, false, false, false, false, false, true, true, true});
  });
  EXPECT_TRUE(line.starts_with("[attention] query 1 may see no source")) << line;
}

/// The projection is a parameter; the queries are an activation.
TEST(Lesson, OneProjectionServesEveryPosition) {
  ParameterSet set;
  const Parameter w_q = set.add({2, 3});
  const Reals weights = normals(6, 4);
  std::copy(weights.begin(), weights.end(), set.value(w_q).begin());
  Tape tape(set);
  const auto queries = [&](const Reals& x, Index length) {
    return linear(tape.input({length, 3}, x), tape.param(w_q)).values();
  };
  const Reals x = normals(12, 5);
  const Reals q = queries(x, 4);
  for (Index t = 0; t < 4; ++t) {
    const Reals alone = queries(row(x, 3, t), 1);
    for (std::size_t d = 0; d < 2; ++d) EXPECT_NEAR(alone[d], row(q, 2, t)[d], sizeof(Real) == 8 ? 1e-15 : 1e-6) << t;
  }
  Reals changed = x;
  changed[3] += 1;  // of position 1
  const Reals moved = queries(changed, 4);
  for (Index t = 0; t < 4; ++t) EXPECT_EQ(row(moved, 2, t) == row(q, 2, t), t != 1) << t;
  EXPECT_TRUE(std::equal(weights.begin(), weights.end(), set.value(w_q).begin()));
}

// --- 5. why divide by the square root

/// Coordinates of +-1 are independent with mean 0 and variance 1.
TEST(Lesson, ScaledScoresHaveVarianceOne) {
  constexpr Index kPairs = 1000, kRounds = 100;
  for (const Index d : {4, 16, 64, 256}) {
    const rng::Stream random(22, rng::Purpose::check, static_cast<std::uint32_t>(d));
    std::uint64_t next = 0;
    const auto signs = [&] {
      Reals x;
      while (static_cast<Index>(x.size()) < kPairs * d) {
        std::uint32_t bits = random.bits(next++);
        for (int i = 0; i < 32; ++i, bits >>= 1) x.push_back(bits & 1 ? Real(1) : Real(-1));
      }
      x.resize(static_cast<std::size_t>(kPairs * d));
      return x;
    };
    Tape tape;
    double sum = 0, square = 0;
    for (Index round = 0; round < kRounds; ++round) {
      tape.reset();
      const Tensor q = tape.input({kPairs, 1, d}, signs()), k = tape.input({kPairs, d, 1}, signs());
      for (const Real score : scale(matmul(q, k), Real(1 / std::sqrt(static_cast<double>(d)))).values()) {
        sum += score;
        square += double{score} * double{score};
      }
    }
    const double n = kPairs * kRounds;
    EXPECT_NEAR(square / n - sum / n * sum / n, 1, 0.05) << d;
  }
}

/// Mean Frobenius norm of softmax's Jacobian diag(w) - w w^T over the rows of the weights.
double mean_jacobian_norm(const Reals& weights, Index S) {
  double sum = 0;
  const Index rows = static_cast<Index>(weights.size()) / S;
  for (Index t = 0; t < rows; ++t) {
    double square = 0;
    for (Index i = 0; i < S; ++i)
      for (Index j = 0; j < S; ++j) {
        const double wi = weights[static_cast<std::size_t>(t * S + i)],
                     wj = weights[static_cast<std::size_t>(t * S + j)];
        square += std::pow((i == j ? wi : 0) - wi * wj, 2);
      }
    sum += std::sqrt(square);
  }
  return sum / static_cast<double>(rows);
}

TEST(Lesson, WithoutScalingSoftmaxLosesItsGradient) {
  constexpr Index S = 3;
  std::vector<double> scaled, unscaled;
  for (const Index d : {4, 16, 64, 256}) {
    const Call call{500, S, d, 1};
    scaled.push_back(mean_jacobian_norm(call().weights, S));
    unscaled.push_back(mean_jacobian_norm(call({.scale = Real(1)}).weights, S));
  }
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_LT(unscaled[i], 0.8 * unscaled[i - 1]) << i;
    EXPECT_NEAR(scaled[i] / scaled[0], 1, 0.2) << i;
  }
}

TEST(Lesson, DotProductIsNotCosineSimilarity) {
  const Call dot{1, 2, 2, 1, {1, 0}, {1, 0, 3, 0}, {0, 1}};  // keys of one direction and two lengths
  Call cosine = dot;
  cosine.k = {1, 0, 1, 0};  // divided by their norms
  const double scale = 1 / std::sqrt(2.0);
  expect_near(dot().weights, {1 / (1 + std::exp(2 * scale)), 1 / (1 + std::exp(-2 * scale))}, kRounding);
  expect_near(cosine().weights, {0.5, 0.5}, kRounding);
}

// --- 6. temperature and masks

double entropy(const Reals& weights) {
  double sum = 0;
  for (const double w : weights) sum -= w > 0 ? w * std::log(w) : 0;
  return sum;
}

TEST(Lesson, LowerTemperatureSharpensAndHigherFlattens) {
  const Call call{1, 5, 3, 2};
  double last_entropy = -1, last_largest = 2;
  for (const double t : {0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0}) {
    const Reals w = call({.temperature = static_cast<Real>(t)}).weights;
    const double largest = *std::max_element(w.begin(), w.end());
    EXPECT_GT(entropy(w), last_entropy) << t;
    EXPECT_LT(largest, last_largest) << t;
    last_entropy = entropy(w);
    last_largest = largest;
  }
  const Reals cold = call({.temperature = Real(1e-4)}).weights, hot = call({.temperature = Real(1e7)}).weights;
  EXPECT_NEAR(*std::max_element(cold.begin(), cold.end()), 1, 1e-6);
  for (const Real w : hot) EXPECT_NEAR(w, 0.2, 1e-6);
}

TEST(Lesson, AMaskedSourceStaysAtZeroAtEveryTemperature) {
  const std::vector<char> allowed{true, false, true, true, true, false, false, true, true};
  for (const double t : {1e-3, 0.1, 1.0, 10.0, 1e6})
    for (const bool causal : {false, true}) {
      const Result r =
          three_positions()({.mask = causal ? Mask::causal() : Mask(), .temperature = static_cast<Real>(t)}, allowed);
      for (std::size_t i = 0; i < 9; ++i) {
        const bool visible = allowed[i] && (!causal || i % 3 <= i / 3);
        if (visible && t < 1) continue;  // may round to 0
        EXPECT_EQ(r.weights[i] == 0, !visible) << i << " at " << t;
      }
    }
}

TEST(Lesson, TheFirstCausalRowIsItsOwnValue) {
  const Result r = three_positions()({.mask = Mask::causal()});
  EXPECT_EQ(row(r.weights, 3, 0), (Reals{1, 0, 0}));
  EXPECT_EQ(row(r.output, 2, 0), (Reals{1, 0}));
}

// --- 7. numerics

TEST(Lesson, HugeScoresStayFinite) {
  for (const Real score : {Real(1e4), Real(-1e4)}) {
    const Call call{1, 3, 1, 1, {1}, {score, 0, score}, {1, 2, 4}};
    const Result r = call({.scale = Real(1)});
    if (score > 0)
      expect_near(r.weights, {0.5, 0, 0.5}, kRounding), expect_near(r.output, {2.5}, kRounding);
    else
      expect_near(r.weights, {0, 1, 0}, kRounding), expect_near(r.output, {2}, kRounding);
  }
}

/// The constant enters through one more coordinate: q' = [q, 1], k' = [k, c].
TEST(Lesson, AConstantAddedToARowChangesNothing) {
  const auto with_constant = [](Real c) {
    const Call call{1, 3, 3, 2, {1, 0, 1}, {1, 0, c, 0, 1, c, 1, 1, c}, kValues};
    return call({.scale = Real(0.5)});
  };
  const Result plain = with_constant(0);
  for (const Real c : {Real(1), Real(-64), Real(1024), Real(20000)}) {
    const Result shifted = with_constant(c);
    expect_near(shifted.weights, {plain.weights.begin(), plain.weights.end()}, kRounding);
    expect_near(shifted.output, {plain.output.begin(), plain.output.end()}, kRounding);
  }
}

}  // namespace
}  // namespace tapehead
