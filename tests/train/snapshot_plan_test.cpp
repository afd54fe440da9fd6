#include "train/snapshot_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tapehead {
namespace {

std::vector<std::uint64_t> grid(const SnapshotPlan& plan, std::uint64_t steps) {
  std::vector<std::uint64_t> list;
  for (std::uint64_t s = 0; s <= steps; ++s)
    if (plan.on_grid(s)) list.push_back(s);
  return list;
}

TEST(SnapshotPlan, KeepsNoMoreThanItMayHoweverLongTheRun) {
  for (const std::int64_t most : {0, 1, 2, 3, 7, 40, 200})
    for (const std::int64_t steps : {1, 2, 10, 500, 20000}) {
      SnapshotLimits limits;
      limits.most = most;
      const SnapshotPlan plan(limits, steps, 1000, 1000);
      const auto kept = grid(plan, static_cast<std::uint64_t>(steps));
      EXPECT_LE(static_cast<std::int64_t>(kept.size()) + (most > 1) + most / 8, std::max<std::int64_t>(most, 0))
          << most << " of " << steps;
      std::int64_t with_parameters = 0;
      for (const std::uint64_t s : kept) with_parameters += plan.keeps_parameters(s);
      EXPECT_LE(with_parameters, 23) << most << " of " << steps;  // and the end
    }
}

TEST(SnapshotPlan, SpacesThemEvenlyInTheLogarithm) {
  SnapshotLimits limits;
  limits.most = 24;  // 19 between, 3 for events
  const SnapshotPlan plan(limits, 100'000, 1000, 1000);
  const auto kept = grid(plan, 100'000);
  ASSERT_GE(kept.size(), 15u);
  EXPECT_EQ(kept[0], 0u);
  EXPECT_EQ(kept[1], 1u);
  const double ratio = std::pow(100'000, 1.0 / 19);
  for (std::size_t i = kept.size() - 8; i + 1 < kept.size(); ++i)
    EXPECT_NEAR(static_cast<double>(kept[i + 1]) / static_cast<double>(kept[i]), ratio, 0.05 * ratio) << i;
}

TEST(SnapshotPlan, KeepsWithinItsBytes) {
  SnapshotLimits limits;
  limits.bytes = 10'000;
  limits.parameter_bytes = 5'000;
  const SnapshotPlan plan(limits, 5000, 1000, 1000);
  const auto kept = grid(plan, 5000);
  EXPECT_LE(kept.size(), 9u);
  int with_parameters = 0;
  for (const std::uint64_t s : kept) with_parameters += plan.keeps_parameters(s);
  EXPECT_LE(with_parameters, 4);
  EXPECT_GE(with_parameters, 2);
  const SnapshotPlan large(limits, 5000, 1'000'000, 1'000'000);
  EXPECT_LE(grid(large, 5000).size(), 2u);
  EXPECT_FALSE(large.keeps_parameters(0) || large.keeps_parameters_of_end());
}

TEST(SnapshotPlan, TakesALargeDropForAnEventButNotTooOften) {
  const SnapshotPlan plan({}, 1000, 1000, 1000);
  EXPECT_TRUE(plan.is_drop(2.0, 1.0, 0.8, 0));
  EXPECT_FALSE(plan.is_drop(2.0, 1.0, 0.95, 0));
  EXPECT_TRUE(plan.is_drop(2.0, 1.0, 0.8, 24));
  EXPECT_FALSE(plan.is_drop(2.0, 1.0, 0.8, 25));
}

}  // namespace
}  // namespace tapehead
