#include "nn/positions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/errors.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;

TEST(Positions, SinusoidalFollowTheFormula) {
  for (Index width : {1, 2, 7, 8}) {
    Tape tape;
    const std::vector<Real> table = sinusoidal_positions(tape, 0, 50, width).values();
    for (Index t = 0; t < 50; ++t)
      for (Index c = 0; c < width; ++c) {
        const double pair = std::floor(static_cast<double>(c) / 2);
        const double angle = static_cast<double>(t) / std::pow(10000.0, 2 * pair / static_cast<double>(width));
        EXPECT_NEAR(table[static_cast<std::size_t>(t * width + c)], c % 2 ? std::cos(angle) : std::sin(angle),
                    sizeof(Real) == 8 ? 1e-13 : 1e-6)
            << "t " << t << ", c " << c;
      }
  }
}

ModelConfig learned(Index context) {
  ModelConfig config;
  config.context = context;
  config.width = 2;
  config.init_std = 1;
  return config;
}

TEST(Positions, AreAddedToEachSequenceAlike) {
  ParameterSet set;
  Initialiser init(set, 1);
  const Positions positions = Positions::make(init, learned(4));
  Tape tape(set);
  const std::vector<Real> y = positions(tape.input({2, 3, 2}, std::vector<Real>(12, 0))).values();
  const auto table = set.value(positions.weight);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(y[i], table[i % 6]);
}

TEST(Positions, LearnedRefuseASequenceLongerThanTheirTable_F57) {
  ParameterSet set;
  Initialiser init(set, 1);
  const Positions positions = Positions::make(init, learned(8));
  Tape tape(set);
  positions(tape.input({8, 2}, std::vector<Real>(16, 0)));
  const std::string message = error_of<ShapeError>([&] { positions(tape.input({9, 2}, std::vector<Real>(18, 0))); });
  EXPECT_TRUE(contains(message, "9 tokens") && contains(message, "has 8")) << message;
}

TEST(Positions, GoOnAfterThosePassedAlready) {
  for (const PositionKind kind : {PositionKind::learned, PositionKind::sinusoidal}) {
    ModelConfig config = learned(8);
    config.positions = kind;
    ParameterSet set;
    Initialiser init(set, 1);
    const Positions positions = Positions::make(init, config);
    Tape tape(set);
    const std::vector<Real> whole = positions(tape.input({8, 2}, std::vector<Real>(16, 0))).values();
    const std::vector<Real> tail = positions(tape.input({3, 2}, std::vector<Real>(6, 0)), 5).values();
    EXPECT_EQ(tail, std::vector<Real>(whole.begin() + 10, whole.end()));
  }
}

// <R_i q, R_j k> is the same for all i, j of one distance (Su et al. 2021, eq. 16), and differs for other distances.
TEST(Positions, RotaryScoresDependOnTheDistanceAlone) {
  Tape tape;
  constexpr Index kLength = 12, kWidth = 8;
  std::vector<Real> same_q, same_k;
  for (Index t = 0; t < kLength; ++t)
    for (Index c = 0; c < kWidth; ++c) {
      same_q.push_back(static_cast<Real>(std::sin(1.7 * static_cast<double>(c) + 1)));
      same_k.push_back(static_cast<Real>(std::cos(2.3 * static_cast<double>(c))));
    }
  const Tensor table = rotary_table(tape, 0, kLength, 3, 100);  // 3 of 4 pairs turn
  const Tensor q = rope(tape.input({kLength, kWidth}, same_q), table);
  const Tensor k = rope(tape.input({kLength, kWidth}, same_k), table);
  const std::vector<Real> scores = matmul(q, transpose(k)).values();
  const auto at = [&](Index i, Index j) { return double{scores[static_cast<std::size_t>(i * kLength + j)]}; };
  for (Index i = 0; i < kLength; ++i)
    for (Index j = 0; j < kLength; ++j)
      EXPECT_NEAR(at(i, j), i >= j ? at(i - j, 0) : at(0, j - i), sizeof(Real) == 8 ? 1e-13 : 1e-5) << i << ' ' << j;
  EXPECT_GT(std::abs(at(5, 0) - at(4, 0)), 1e-2);
}

TEST(Positions, RotaryTableStartsWhereItIsTold) {
  Tape tape;
  const std::vector<Real> whole = rotary_table(tape, 0, 9, 2, 50).values();
  const std::vector<Real> tail = rotary_table(tape, 6, 3, 2, 50).values();
  EXPECT_EQ(tail, std::vector<Real>(whole.begin() + 24, whole.end()));
  EXPECT_NEAR(tail[2], std::cos(6 / std::sqrt(50.0)), 1e-6);  // pair 1 of 2 turns by base^(-1/2) a token
}

// The slopes that Press et al. 2022 print for 8 heads, and what their published rule gives for 12 and 3.
TEST(Positions, AlibiSlopesAreThePublishedOnes) {
  const auto expect = [](const std::vector<Real>& slopes, const std::vector<double>& exponents) {
    ASSERT_EQ(slopes.size(), exponents.size());
    for (std::size_t h = 0; h < slopes.size(); ++h) EXPECT_NEAR(slopes[h], std::exp2(-exponents[h]), 1e-7) << h;
  };
  expect(alibi_slopes(8), {1, 2, 3, 4, 5, 6, 7, 8});
  expect(alibi_slopes(12), {1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5});
  expect(alibi_slopes(3), {4, 8, 2});
  expect(alibi_slopes(1), {8});
}

}  // namespace
}  // namespace tapehead
