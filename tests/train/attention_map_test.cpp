#include "train/attention_map.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/train/small_map.h"

namespace tapehead {
namespace {

using test::cross_map;

TEST(PatternMatch, IsTheMeanWeightOnTheIdealColumn) {
  AttentionMap map = cross_map();
  EXPECT_EQ(pattern_match(map), 1);
  map.ideal = {1, 0};
  EXPECT_EQ(pattern_match(map), 0.75);
  map.ideal = {2, 2};
  EXPECT_EQ(pattern_match(map), 0.125);
  map.ideal = {-1, -1};
  EXPECT_TRUE(std::isnan(pattern_match(map)));
  map.ideal.clear();
  EXPECT_TRUE(std::isnan(pattern_match(map)));
}

}  // namespace
}  // namespace tapehead
