// Measures of patterns drawn by hand, whose values follow from their definitions.
#include "train/map_measures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/errors.h"

namespace tapehead {
namespace {

using test::contains;

AttentionMap causal(const std::vector<std::string>& tokens, const std::vector<std::vector<float>>& rows) {
  AttentionMap map;
  map.kind = "decoder";
  map.rows = map.columns = static_cast<std::int32_t>(tokens.size());
  map.row_tokens = map.column_tokens = tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    for (std::size_t j = 0; j < tokens.size(); ++j) {
      map.visible.push_back(j <= i);
      map.weights.push_back(j < rows[i].size() ? rows[i][j] : 0);
    }
  return map;
}

AttentionMap uniform(int n) {
  std::vector<std::string> tokens;
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < n; ++i) {
    tokens.push_back(std::to_string(i));
    rows.emplace_back(static_cast<std::size_t>(i + 1), 1.0f / static_cast<float>(i + 1));
  }
  return causal(tokens, rows);
}

TEST(MapMeasures, OfUniformCausalAttentionAreKnown) {
  const MapMeasures m = measure(uniform(6));
  EXPECT_NEAR(m.sharpness, 0, 1e-6);
  EXPECT_NEAR(m.distance, (0 + 0.5 + 1 + 1.5 + 2 + 2.5) / 6, 1e-6);  // i / 2 in row i
  EXPECT_NEAR(m.confidence, (1 + 1 / 2. + 1 / 3. + 1 / 4. + 1 / 5. + 1 / 6.) / 6, 1e-6);
  EXPECT_NEAR(m.previous, (1 / 2. + 1 / 3. + 1 / 4. + 1 / 5. + 1 / 6.) / 5, 1e-6);
  EXPECT_TRUE(std::isnan(m.duplicate) && std::isnan(m.induction) && std::isnan(m.pattern_match));
}

TEST(MapMeasures, OfOneKeyARowIsSharp) {
  const MapMeasures m = measure(causal({"a", "b", "c"}, {{1}, {1, 0}, {0, 1, 0}}));
  EXPECT_EQ(m.sharpness, 1);
  EXPECT_EQ(m.confidence, 1);
  EXPECT_EQ(m.previous, 1);
  EXPECT_NEAR(m.distance, 2.0 / 3, 1e-12);
}

TEST(MapMeasures, OfAHandBuiltInductionHeadIsOne) {
  // a b c a b c: each repeated token looks at what followed its earlier copy.
  const MapMeasures m =
      measure(causal({"a", "b", "c", "a", "b", "c"}, {{1}, {1}, {1}, {0, 1}, {0, 0, 1}, {0, 0, 0, 1}}));
  EXPECT_EQ(m.induction, 1);
  EXPECT_EQ(m.duplicate, 0);
}

TEST(MapMeasures, OfADuplicateTokenHeadIsOne) {
  const MapMeasures m = measure(causal({"a", "b", "a", "a"}, {{1}, {1}, {1}, {0.5f, 0, 0.5f}}));
  EXPECT_EQ(m.duplicate, 1);
}

TEST(MapMeasures, OfCrossAttentionSpeakOfNoPositions) {
  AttentionMap map = uniform(3);
  map.kind = "cross";
  const MapMeasures m = measure(map);
  EXPECT_TRUE(std::isnan(m.distance) && std::isnan(m.previous) && std::isnan(m.duplicate) && std::isnan(m.induction));
  EXPECT_NEAR(m.sharpness, 0, 1e-6);
}

TEST(Rollout, MixesHeadsAndTheResidualPathAndKeepsRowsAtOne) {
  // One layer that looks at the token before: half stays, half comes from there. Twice: 1/4, 1/2, 1/4.
  AttentionMap first = causal({"a", "b", "c"}, {{1}, {1}, {0, 1}});
  EXPECT_EQ(rollout({first}, "decoder"), (std::vector<float>{1, 0, 0, 0.5f, 0.5f, 0, 0, 0.5f, 0.5f}));
  AttentionMap second = first;
  second.layer = 1;
  EXPECT_EQ(rollout({first, second}, "decoder"), (std::vector<float>{1, 0, 0, 0.75f, 0.25f, 0, 0.25f, 0.5f, 0.25f}));
  AttentionMap other = uniform(3);
  other.layer = 1;
  other.head = 1;
  const std::vector<float> mixed = rollout({first, second, other}, "decoder");
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(mixed[3 * i] + mixed[3 * i + 1] + mixed[3 * i + 2], 1, 1e-6);
  EXPECT_TRUE(rollout({first}, "encoder").empty());
}

TEST(MapMeasures, HaveANameEach) { EXPECT_EQ(measure_names().size(), as_list(MapMeasures{}).size()); }

TEST(Labels, NeedHalfOfTheWeight) {
  MapMeasures m{0.97, 1, 1, 2, 0.49, 0.5, 0.2};
  const auto found = labels(m, "copy source");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "copy source");
  EXPECT_EQ(found[1].name, "duplicate token");
  EXPECT_EQ(found[0].threshold, 0.5);
}

TEST(Findings, AreMadeOfTheNumbers) {
  AttentionMap map = causal({"a", "b"}, {{1}, {0.975f, 0.025f}});
  map.layer = 1;
  map.ideal = {-1, 0};
  const std::string text = finding(map, measure(map), "lookup match");
  EXPECT_TRUE(contains(text, "L1H0 puts 0.97 of its weight where the rule looks")) << text;
  EXPECT_TRUE(contains(text, "Lookup match 0.97, previous token 0.97 (a label needs 0.5)")) << text;
  EXPECT_EQ(ablation_finding(0.998, 0.124), "Without it exact match falls from 99.8 % to 12.4 %.");
  EXPECT_EQ(ablation_finding(0.9996, 1), "Without it exact match rises from 99.9 % to 100 %.");
  EXPECT_EQ(ablation_finding(0, 0), "Without it exact match stays at 0.0 %.");
}

}  // namespace
}  // namespace tapehead
