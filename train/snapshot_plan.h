// At which steps of a run its attention is kept, and at which of those its parameters too.
//
// Spaced evenly in log(step), since a model changes in proportion to what it has seen; and wherever the loss drops.
// What is kept follows from settings, step and losses alone, so an interrupted run that goes on keeps the same.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tapehead {

struct SnapshotLimits {
  std::int64_t most = 200;            // snapshots of a run; 0: none
  std::size_t bytes = 32 << 20;       // of all their weights
  std::int64_t most_parameters = 24;  // snapshots with parameters
  std::size_t parameter_bytes = 16 << 20;
};

class SnapshotPlan {
 public:
  /// For a run of `steps`; a snapshot takes `bytes_each`, a set of parameters `parameter_bytes_each`.
  SnapshotPlan(const SnapshotLimits& limits, std::int64_t steps, std::size_t bytes_each,
               std::size_t parameter_bytes_each);

  /// True for the steps of the logarithmic grid, 0 among them.
  bool on_grid(std::uint64_t step) const;
  /// True for every so-manieth of those.
  bool keeps_parameters(std::uint64_t step) const;
  /// True when a training loss lies so far below that of the last snapshot that the model must have changed: by a
  /// twentieth of the first snapshot's. `events`: snapshots kept for this reason so far.
  bool is_drop(double first_loss, double last_loss, double loss, std::int64_t events) const;
  bool keeps_end() const { return most_ > 0; }
  bool keeps_parameters_of_end() const { return most_ > 0 && most_parameters_ > 0; }

 private:
  std::int64_t index(std::uint64_t step) const;  // of the interval that holds the step; from 0

  std::int64_t most_, events_, intervals_, most_parameters_, stride_;
  double log_ratio_;
};

}  // namespace tapehead
