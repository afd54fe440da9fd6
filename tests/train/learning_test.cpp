// What the project promises of its two tasks: each kind of model learns them at every seed, and a head's attention is
// the task's rule.
#include <gtest/gtest.h>

#include "tests/temporary_folder.h"
#include "train/measures.h"
#include "train/trainer.h"

namespace tapehead {
namespace {

using Setting = std::tuple<const char*, const char*, int>;  // task, model.kind, seed

class Learning : public testing::TestWithParam<Setting> {};

TEST_P(Learning, ReachesEverySequenceWithAHeadThatFollowsTheRule) {
  const auto [task, kind, seed] = GetParam();
  const test::TemporaryFolder folder;
  TrainOptions options;
  options.config = Config::defaults(task);
  options.config.set(std::string("model.kind=") + kind);
  options.config.seed = static_cast<std::uint64_t>(seed);
  options.threads = 1;  // tests run side by side
  const TrainResult result = train(options, prepare_run_folder(folder.file("run"), false, false), {});
  EXPECT_EQ(result.best.exact_match, 1);
  EXPECT_EQ(result.best.token_accuracy, 1);

  const CheckpointFile best = CheckpointFile::load(folder.file("run/best.ckpt"));
  const auto made = make_task(task, best.config.data);
  Model model = load_model(best, best.config.model_for(*made), "best.ckpt");
  const Layout layout = layout_of(best.config.model.kind);
  double match = 0;
  for (const HeadMeasure& head : measure_heads(model, BatchSource(*made, layout, 1, 1).held_out(100, 1234)))
    if (head.kind == (layout == Layout::split ? "cross" : "decoder")) match = std::max(match, head.pattern_match);
  EXPECT_GT(match, 0.9);
}

std::string name_of_setting(const testing::TestParamInfo<Setting>& info) {
  const auto [task, kind, seed] = info.param;
  const bool decoder = std::string(kind) == "decoder";
  return std::string(task) + (decoder ? "_decoder_" : "_encoder_decoder_") + std::to_string(seed);
}

const auto kTasks = testing::Values("copy", "lookup");
const auto kKinds = testing::Values("decoder", "encoder-decoder");
INSTANTIATE_TEST_SUITE_P(FirstSeed, Learning, testing::Combine(kTasks, kKinds, testing::Values(1)), name_of_setting);
INSTANTIATE_TEST_SUITE_P(SlowSeeds, Learning, testing::Combine(kTasks, kKinds, testing::Range(2, 11)), name_of_setting);

}  // namespace
}  // namespace tapehead
