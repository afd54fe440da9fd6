#include "train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/errors.h"

namespace tapehead {
namespace {

TrainConfig schedule(std::int64_t warmup, std::int64_t steps, double rate = 1, double least = 0) {
  TrainConfig config;
  config.warmup = warmup;
  config.steps = steps;
  config.learning_rate = rate;
  config.min_learning_rate = least;
  return config;
}

TEST(Schedule, ConstantRisesAndStays) {
  TrainConfig config = schedule(3, 10, 0.4, 0.1);
  config.schedule = ScheduleKind::constant;
  for (const auto& [step, rate] : {std::pair<std::int64_t, double>{1, 0.1}, {3, 0.3}, {4, 0.4}, {10, 0.4}})
    EXPECT_DOUBLE_EQ(learning_rate(config, step), rate) << step;
}

TEST(Schedule, EveryPairOfWarmupAndTotalStaysInRange_F65) {
  for (const std::int64_t warmup : {0, 1, 2, 10})
    for (const std::int64_t steps : {1, 2, 10})
      for (std::int64_t step = 1; step <= steps; ++step) {
        const double rate = learning_rate(schedule(warmup, steps, 3e-3), step);
        EXPECT_TRUE(rate > 0 && rate <= 3e-3) << rate << " at " << step << " of " << steps << ", warmup " << warmup;
      }
}

TEST(Schedule, RefusesStepsOutsideTheRun_F65) {
  EXPECT_EQ(test::error_of<ConfigError>([] { learning_rate(schedule(2, 10), 0); }),
            "[schedule] step 0 is outside 1 to 10.");
  test::error_of<ConfigError>([] { learning_rate(schedule(2, 10), 11); });
  test::error_of<ConfigError>([] { learning_rate(schedule(0, 0), 1); });
}

TEST(Schedule, FollowsTheFormula) {
  for (const std::int64_t warmup : {0, 3, 12})
    for (std::int64_t step = 1; step <= 10; ++step) {
      const double s = static_cast<double>(step), w = static_cast<double>(warmup);
      const double expected = step <= warmup
                                  ? 0.5 * s / (w + 1)
                                  : 0.1 + 0.4 * (1 + std::cos(std::numbers::pi * (s - 1 - w) / (10 - w))) / 2;
      EXPECT_NEAR(learning_rate(schedule(warmup, 10, 0.5, 0.1), step), expected, 1e-15);
    }
}

TEST(Schedule, ReachesItsPeakExactlyAfterTheWarmup) {
  for (const double rate : {2e-3, 0.1, 1e-300}) EXPECT_EQ(learning_rate(schedule(20, 100, rate, rate / 3), 21), rate);
}

// 1 + cos(pi - 1e-9) is 0 in double precision.
TEST(Schedule, TheLastStepOfALongRunStillUpdates_F65) {
  constexpr std::int64_t kSteps = 1'000'000'000;
  const double expected = std::pow(std::numbers::pi / 2 / static_cast<double>(kSteps), 2);
  EXPECT_NEAR(learning_rate(schedule(0, kSteps), kSteps) / expected, 1, 1e-9);
}

}  // namespace
}  // namespace tapehead
