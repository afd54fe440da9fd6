// The checkpoints that come with the source still load, and still know their tasks.
#include <gtest/gtest.h>

#include <filesystem>

#include "train/checkpoint.h"
#include "train/measures.h"
#include "train/shards.h"

namespace tapehead::inline TAPEHEAD_REAL {
namespace {

class ShippedCheckpoints : public testing::TestWithParam<const char*> {};

TEST_P(ShippedCheckpoints, LoadAndAnswerUnseenSequences) {
  const std::string path = std::string(TAPEHEAD_SOURCE_DIR "/checkpoints/") + GetParam() + ".ckpt";
  EXPECT_LT(std::filesystem::file_size(path), 500'000u);
  const CheckpointFile file = CheckpointFile::load(path);
  const std::unique_ptr<Task> task = make_task(file.config.task, file.config.data);
  Model model = load_model(file, file.config.model_for(*task), path);

  constexpr std::uint64_t kOtherSeed = 20;  // than that of its training
  const Batch unseen = BatchSource(*task, layout_of(file.config.model.kind), 1, kOtherSeed).held_out(200, kOtherSeed);
  EXPECT_EQ(Shards(model, 1).evaluate(unseen).exact_match, 1.0);
  double best = 0;
  for (const HeadMeasure& head : measure_heads(model, unseen)) best = std::max(best, head.pattern_match);
  EXPECT_GT(best, 0.9);
}

INSTANTIATE_TEST_SUITE_P(All, ShippedCheckpoints, testing::Values("copy", "lookup"));

}  // namespace
}  // namespace tapehead::inline TAPEHEAD_REAL
