// Attention read off a model, where weights are known: heads that look everywhere alike.
#include "train/measures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "train/config.h"

namespace tapehead {
namespace {

// Copy of four symbols by a model whose queries are zero: every score is 0.
struct Uniform {
  explicit Uniform(const char* kind) {
    config.data[0].value = 4;
    config.set(std::string("model.kind=") + kind);
    config.model.layers = 2;
    config.model.width = 8;
    task = make_task(config.task, config.data);
    model.emplace(config.model_for(*task), 1);
    for (const NamedParameter& p : unique_parameters(model->net))
      if (p.name.ends_with(".q.weight")) std::ranges::fill(model->parameters.value(p.parameter), Real{0});
    batch = BatchSource(*task, layout_of(config.model.kind), 1, 1).held_out(70, 1);  // more than one pass measures
  }
  Config config = Config::defaults("copy");
  std::unique_ptr<Task> task;
  std::optional<Model> model;
  Batch batch;
};

TEST(MeasureHeads, OfUniformCausalHeadsIsTheShareOfOneOfTheVisible) {
  Uniform u("decoder");
  const std::vector<HeadMeasure> heads = measure_heads(*u.model, u.batch);
  ASSERT_EQ(heads.size(), 4u);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    EXPECT_EQ(heads[i].kind, "decoder");
    EXPECT_EQ(heads[i].layer, static_cast<std::int32_t>(i / 2));
    EXPECT_EQ(heads[i].head, static_cast<std::int32_t>(i % 2));
    // Rows 4 to 7 predict the copy and see 5 to 8 sources.
    EXPECT_NEAR(heads[i].pattern_match, (1.0 / 5 + 1.0 / 6 + 1.0 / 7 + 1.0 / 8) / 4, 1e-6);
  }
}

TEST(MeasureHeads, OfAnEncoderDecoderSpeaksOfCrossAttentionAlone) {
  Uniform u("encoder-decoder");
  std::string kinds;
  for (const HeadMeasure& head : measure_heads(*u.model, u.batch)) {
    kinds += head.kind + ' ';
    if (head.kind == "cross") {
      EXPECT_NEAR(head.pattern_match, 0.25, 1e-6);
    } else {
      EXPECT_TRUE(std::isnan(head.pattern_match)) << head.kind;
    }
  }
  EXPECT_EQ(kinds, "decoder decoder decoder decoder cross cross cross cross encoder encoder encoder encoder ");
}

TEST(MeasureHeads, OfAnEncoderIsOfItsSelfAttention) {
  Uniform u("encoder");
  for (const HeadMeasure& head : measure_heads(*u.model, u.batch)) {
    EXPECT_EQ(head.kind, "encoder");
    EXPECT_NEAR(head.pattern_match, 0.25, 1e-6);
  }
}

TEST(AttentionMaps, ShowTheWeightsTheirTokensAndWhatIsMasked) {
  Uniform u("decoder");
  const std::vector<std::string> names = u.task->vocabulary().tokens();
  const std::vector<AttentionMap> maps = attention_maps(*u.model, u.batch, 3, names);
  ASSERT_EQ(maps.size(), 4u);
  const AttentionMap& map = maps[3];
  EXPECT_EQ(map.layer, 1);
  EXPECT_EQ(map.head, 1);
  ASSERT_EQ(map.rows, 8);
  ASSERT_EQ(map.columns, 8);
  EXPECT_EQ(map.row_tokens, map.column_tokens);
  EXPECT_EQ(map.row_tokens[4], "|");
  EXPECT_EQ(map.row_tokens[0], map.row_tokens[5]);  // the copy
  for (std::size_t t = 0; t < 8; ++t)
    for (std::size_t s = 0; s < 8; ++s) {
      EXPECT_EQ(map.visible[t * 8 + s], s <= t);
      EXPECT_NEAR(map.weights[t * 8 + s], s <= t ? 1.0 / static_cast<double>(t + 1) : 0, 1e-6);
    }
  EXPECT_EQ(map.ideal, (std::vector<std::int32_t>{-1, -1, -1, -1, 0, 1, 2, 3}));
}

TEST(AttentionMaps, OfAWindowAreMaskedOutsideOfIt) {
  Uniform u("decoder");
  u.config.set("model.window=3");
  Model model(u.config.model_for(*u.task), 3);
  const AttentionMap map = attention_maps(model, u.batch, 0, u.task->vocabulary().tokens())[0];
  for (std::size_t t = 0; t < 8; ++t)
    for (std::size_t s = 0; s < 8; ++s) EXPECT_EQ(map.visible[t * 8 + s], s <= t && t < s + 3) << t << ' ' << s;
}

TEST(AttentionMaps, OfEverySequenceAverageToTheMeasure) {  // of heads that are not uniform
  Uniform u("encoder-decoder");
  Model model(u.config.model_for(*u.task), 3);
  const std::vector<HeadMeasure> heads = measure_heads(model, u.batch);
  std::vector<double> means(heads.size());
  for (Index b = 0; b < u.batch.sequences; ++b) {
    const auto maps = attention_maps(model, u.batch, b, u.task->vocabulary().tokens());
    ASSERT_EQ(maps.size(), heads.size());
    for (std::size_t i = 0; i < maps.size(); ++i) {
      EXPECT_EQ(maps[i].kind, heads[i].kind);
      if (!maps[i].ideal.empty()) means[i] += pattern_match(maps[i]) / static_cast<double>(u.batch.sequences);
    }
  }
  for (std::size_t i = 0; i < heads.size(); ++i)
    if (heads[i].kind == "cross") {
      EXPECT_NEAR(means[i], heads[i].pattern_match, 1e-6);
    }
}

}  // namespace
}  // namespace tapehead
