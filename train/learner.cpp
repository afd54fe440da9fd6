#include "train/learner.h"

#include <algorithm>
#include <cmath>

#include "autograd/error.h"
#include "train/schedule.h"

namespace tapehead::inline TAPEHEAD_REAL {

Learner::Learner(Model& model, const TrainConfig& config, std::uint64_t seed, int threads)
    : model_(model),
      config_(config),
      seed_(seed),
      shards_(model, threads),
      parameters_(unique_parameters(model.net)),
      optimizer_(parameters_, model.parameters.size(), config) {}

namespace {

[[noreturn]] void fail_not_finite(const Model& model, const std::vector<NamedParameter>& parameters, std::uint64_t step,
                                  double loss) {
  std::string where = "the loss";
  for (const NamedParameter& p : parameters) {
    const Real* g = model.parameters.grads() + p.parameter.offset;
    if (std::any_of(g, g + p.parameter.shape.numel(), [](Real x) { return !std::isfinite(x); })) {
      where = "the gradient of " + p.name;
      break;
    }
  }
  throw Error(error_line("train",
                         where + " is not finite at step " + std::to_string(step) + ", loss " + std::to_string(loss),
                         {}, "lower train.learning_rate, or set train.clip"));
}

}  // namespace

StepReport Learner::step(const Batch& batch) {
  StepReport report;
  report.step = next_step();
  const RandomContext random{seed_, static_cast<std::uint32_t>(report.step), 0};
  report.loss = shards_.gradients(batch, random, static_cast<Real>(config_.label_smoothing));
  report.learning_rate = learning_rate(config_, static_cast<std::int64_t>(report.step));
  optimizer_.drop_frozen(model_.parameters);
  report.grad_norm = global_norm(model_.parameters);
  report.tokens = batch.sequences * (batch.source_length + batch.target_length);
  if (!std::isfinite(report.loss) || !std::isfinite(report.grad_norm))
    fail_not_finite(model_, parameters_, report.step, report.loss);
  const bool clips = config_.clip > 0 && report.grad_norm > config_.clip;
  optimizer_.step(model_.parameters, report.learning_rate, clips ? config_.clip / report.grad_norm : 1);
  return report;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
