// The snapshots of a run in progress: takes them when its plan says so.
#pragma once

#include "train/attention_history.h"
#include "train/trainer.h"

namespace tapehead::inline TAPEHEAD_REAL {

class SnapshotSeries {
 public:
  /// `kept`: those of the run before it was interrupted. The trainer must outlive the series.
  SnapshotSeries(const SnapshotLimits& limits, Trainer& trainer, AttentionHistory kept);

  /// After a step with this training loss, or before the first. True when a snapshot was taken.
  bool offer(double training_loss, double exact_match);
  /// The run ends here, or pauses.
  void finish(double exact_match);
  /// On resume: the steps after this one will be done again.
  void forget_after(std::uint64_t step);

  const AttentionHistory& kept() const { return kept_; }
  double seconds() const { return seconds_; }  // that taking them took

 private:
  void take(SnapshotReason reason, double exact_match);
  void keep_parameters();

  Trainer& trainer_;
  AttentionHistory kept_;
  SnapshotPlan plan_;
  double seconds_ = 0;
};

}  // namespace tapehead::inline TAPEHEAD_REAL
