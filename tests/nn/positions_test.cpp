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
    const std::vector<Real> table = sinusoidal_positions(tape, 50, width).values();
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

TEST(Positions, AreAddedToEachSequenceAlike) {
  ParameterSet set;
  Initialiser init(set, 1);
  const Positions positions = Positions::make(init, PositionKind::learned, 4, 2, 1);
  Tape tape(set);
  const std::vector<Real> y = positions(tape.input({2, 3, 2}, std::vector<Real>(12, 0))).values();
  const auto table = set.value(positions.weight);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(y[i], table[i % 6]);
}

TEST(Positions, LearnedRefuseASequenceLongerThanTheirTable_F57) {
  ParameterSet set;
  Initialiser init(set, 1);
  const Positions positions = Positions::make(init, PositionKind::learned, 8, 2, 1);
  Tape tape(set);
  positions(tape.input({8, 2}, std::vector<Real>(16, 0)));
  const std::string message = error_of<ShapeError>([&] { positions(tape.input({9, 2}, std::vector<Real>(18, 0))); });
  EXPECT_TRUE(contains(message, "9 tokens") && contains(message, "has 8")) << message;
}

}  // namespace
}  // namespace tapehead
