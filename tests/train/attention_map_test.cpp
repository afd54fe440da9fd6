#include "train/attention_map.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tapehead {
namespace {

AttentionMap cross_map() {
  AttentionMap map;
  map.kind = "cross";
  map.layer = 1;
  map.head = 3;
  map.rows = 2;
  map.columns = 3;
  map.weights = {0.25f, 0.5f, 0.25f, 1, 0, 0};
  map.visible = {1, 1, 1, 1, 0, 0};
  map.row_tokens = {"|", "c"};
  map.column_tokens = {"c7", "a3", "d0"};
  map.ideal = {-1, 0};
  return map;
}

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
