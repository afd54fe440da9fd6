// Twenty training steps from the same weights and batches give PyTorch's losses, gradient norms and weights
// (tests/golden/models.py, make_training): AdamW, warmup and cosine, clipping by the global norm.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/golden.h"
#include "train/optimizer.h"
#include "train/schedule.h"
#include "train/shards.h"

namespace tapehead::inline TAPEHEAD_REAL::golden {

namespace {

TrainConfig run_config() {
  TrainConfig config;
  config.steps = 20;
  config.learning_rate = 1e-3;
  config.min_learning_rate = 1e-4;
  config.beta2 = 0.95;
  config.weight_decay = 0.1;
  config.warmup = 5;
  return config;
}

Batch batch_of(const File& file, std::int64_t step) {
  const auto slice = [&](const char* key) {
    const Entry& all = file.at(key);  // [steps, B, T]
    const auto tokens = all.as<std::int32_t>();
    const auto begin = tokens.begin() + (step - 1) * all.shape.without(0).numel();
    return std::vector<std::int32_t>(begin, begin + all.shape.without(0).numel());
  };
  Batch batch;
  batch.sequences = file.at("run/in/tokens").shape[1];
  batch.target_length = file.at("run/in/tokens").shape[2];
  batch.inputs = slice("run/in/tokens");
  batch.targets = slice("run/in/targets");
  batch.counted = std::ranges::count_if(batch.targets, [](std::int32_t t) { return t != Batch::kIgnore; });
  return batch;
}

/// Trains and returns what differs from the stored run.
std::string check_run(const TrainConfig& config) {
  const File file("training");
  Model model(small_model(ModelKind::decoder, NormOrder::pre, false), 1);
  Tape tape(model.parameters);
  Case(file, "run", tape).load(model.net);
  Shards shards(model, 2);  // the sequences of a batch count unequally many targets
  AdamW optimizer(unique_parameters(model.net), model.parameters.size(), config);
  std::vector<Real> losses, norms, rates;
  for (std::int64_t step = 1; step <= config.steps; ++step) {
    losses.push_back(static_cast<Real>(shards.gradients(batch_of(file, step), {}, 0)));
    const double norm = global_norm(model.parameters), rate = learning_rate(config, step);
    norms.push_back(static_cast<Real>(norm));
    rates.push_back(static_cast<Real>(rate));
    optimizer.step(model.parameters, rate, std::min(1.0, config.clip / norm));
  }

  Comparison loss, norm, rate;
  rate.add("learning rate", rates, file.at("run/out/learning_rate"));
  loss.add("loss", losses, file.at("run/out/loss"));
  norm.add("gradient norm", norms, file.at("run/out/grad_norm"));
  std::string failures = rate.failures() + loss.failures() + norm.failures();
  for_each_parameter(model.net, [&](const std::string& name, const Parameter& p) {
    Comparison weight;
    if (const Entry* want = file.find("run/out/" + name)) weight.add(name, model.parameters.value(p), *want);
    failures += weight.failures();
  });
  return failures;
}

}  // namespace

TEST(GoldenTraining, GivesTheNumbersOfPyTorch) { EXPECT_EQ(check_run(run_config()), ""); }

TEST(GoldenTraining, NoticesEverySettingThatDiffers) {
  const auto with = [](auto change) {
    TrainConfig config = run_config();
    change(config);
    return check_run(config);
  };
  EXPECT_NE(with([](TrainConfig& c) { c.clip = 1.1; }), "");
  EXPECT_NE(with([](TrainConfig& c) { c.beta1 = 0.901; }), "");
  EXPECT_NE(with([](TrainConfig& c) { c.beta2 = 0.951; }), "");
  EXPECT_NE(with([](TrainConfig& c) { c.eps = 1e-5; }), "");
  EXPECT_NE(with([](TrainConfig& c) { c.weight_decay = 0; }), "");
  EXPECT_NE(with([](TrainConfig& c) { c.warmup = 6; }), "");
  EXPECT_NE(with([](TrainConfig& c) { c.min_learning_rate = 1.01e-4; }), "");
}

}  // namespace tapehead::inline TAPEHEAD_REAL::golden
