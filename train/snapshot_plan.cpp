#include "train/snapshot_plan.h"

#include <algorithm>
#include <cmath>

namespace tapehead {

SnapshotPlan::SnapshotPlan(const SnapshotLimits& limits, std::int64_t steps, std::size_t bytes_each,
                           std::size_t parameter_bytes_each) {
  const auto fit = [](std::int64_t most, std::size_t bytes, std::size_t each) {
    return std::min(most, static_cast<std::int64_t>(bytes / std::max<std::size_t>(each, 1)));
  };
  // However large, the start, one between and the end are worth their bytes.
  most_ = std::max(fit(limits.most, limits.bytes, bytes_each), std::min<std::int64_t>(limits.most, 3));
  events_ = most_ / 8;
  intervals_ = std::max<std::int64_t>(most_ - 2 - events_, 0);  // beside step 0 and the end
  log_ratio_ = std::log(static_cast<double>(std::max<std::int64_t>(steps, 2))) /
               static_cast<double>(std::max<std::int64_t>(intervals_, 1));
  most_parameters_ = fit(limits.most_parameters, limits.parameter_bytes, parameter_bytes_each);
  const std::int64_t between = std::max<std::int64_t>(most_parameters_ - 2, 0);
  stride_ = between > 0 ? (intervals_ + between - 1) / between : 0;
}

// Interval i holds the steps s with i <= log s / log ratio < i + 1; the steps after the last one belong to it.
std::int64_t SnapshotPlan::index(std::uint64_t step) const {
  constexpr double kRounding = 1e-9;
  const auto at = static_cast<std::int64_t>(std::floor(std::log(static_cast<double>(step)) / log_ratio_ + kRounding));
  return std::min(at, intervals_ - 1);
}

bool SnapshotPlan::on_grid(std::uint64_t step) const {
  if (step == 0) return most_ > 1;
  if (intervals_ == 0) return false;
  return step == 1 || index(step) != index(step - 1);
}

bool SnapshotPlan::keeps_parameters(std::uint64_t step) const {
  if (!on_grid(step)) return false;
  if (step == 0) return most_parameters_ > 1;
  if (stride_ == 0) return false;
  return step == 1 || index(step) / stride_ != index(step - 1) / stride_;
}

bool SnapshotPlan::is_drop(double first_loss, double last_loss, double loss, std::int64_t events) const {
  constexpr double kDrop = 0.05;  // of the first loss
  return events < events_ && last_loss - loss > kDrop * first_loss;
}

}  // namespace tapehead
