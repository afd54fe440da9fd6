// Twenty training steps from the same weights and batches give PyTorch's losses, gradient norms and weights
// (tests/golden/models.py, make_training): AdamW, warmup and cosine, clipping by the global norm.
#include <gtest/gtest.h>

#include <algorithm>

#include "nn/transformer.h"
#include "tests/golden.h"
#include "train/optimizer.h"

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

/// Trains and returns what differs from the stored run.
std::string check_run(const TrainConfig& config) {
  const File file("training");
  Model model(small_model(ModelKind::decoder, NormOrder::pre, false), 1);
  Tape tape(model.parameters);
  Case(file, "run", tape).load(model.net);
  AdamW optimizer(unique_parameters(model.net), model.parameters.size(), config);

  const Entry &all_tokens = file.at("run/in/tokens"), &all_targets = file.at("run/in/targets");  // [steps, B, T]
  const Shape batch = all_tokens.shape.without(0);
  const auto tokens = all_tokens.as<std::int32_t>(), targets = all_targets.as<std::int32_t>();
  const std::vector<double>& rates = file.at("run/out/learning_rate").values;
  std::vector<Real> losses, norms;
  for (std::size_t step = 0; step < rates.size(); ++step) {
    const auto numbers = static_cast<std::size_t>(batch.numel()), first = step * numbers;
    tape.reset();
    model.parameters.zero_grad();
    const Tensor logits = model.net(tape.ids(batch, std::span(tokens).subspan(first, numbers)));
    const Tensor loss = cross_entropy(logits, tape.ids(batch, std::span(targets).subspan(first, numbers)));
    losses.push_back(loss.item());
    tape.backward(loss);
    const double norm = global_norm(model.parameters);
    norms.push_back(static_cast<Real>(norm));
    optimizer.step(model.parameters, rates[step], std::min(1.0, config.clip / norm));
  }

  Comparison loss, norm;
  loss.add("loss", losses, file.at("run/out/loss"));
  norm.add("gradient norm", norms, file.at("run/out/grad_norm"));
  std::string failures = loss.failures() + norm.failures();
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
  EXPECT_NE(with([](TrainConfig& c) { c.clip = 1.001; }), "");
  EXPECT_NE(with([](TrainConfig& c) { c.beta1 = 0.901; }), "");
  EXPECT_NE(with([](TrainConfig& c) { c.beta2 = 0.951; }), "");
  EXPECT_NE(with([](TrainConfig& c) { c.eps = 1e-5; }), "");
  EXPECT_NE(with([](TrainConfig& c) { c.weight_decay = 0; }), "");
}

}  // namespace tapehead::inline TAPEHEAD_REAL::golden
