#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "autograd/error.h"

namespace tapehead {

double learning_rate(const TrainConfig& config, std::int64_t step) {
  if (step < 1 || step > config.steps)
    throw ConfigError(
        error_line("schedule", "step " + std::to_string(step) + " is outside 1 to " + std::to_string(config.steps)));
  const double rate = config.learning_rate, least = config.min_learning_rate;
  if (step <= config.warmup) return rate * static_cast<double>(step) / static_cast<double>(config.warmup + 1);
  if (config.schedule == ScheduleKind::constant) return rate;
  // (1 + cos(pi - x)) / 2 = sin(x / 2)^2: near the end 1 + cos would round to 0, and the last steps would not update.
  const double left = static_cast<double>(config.steps - step + 1) / static_cast<double>(config.steps - config.warmup);
  const double root = std::sin(std::numbers::pi / 2 * left);
  return std::min(rate, least + (rate - least) * root * root);
}

}  // namespace tapehead
