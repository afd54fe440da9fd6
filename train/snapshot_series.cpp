#include "train/snapshot_series.h"

#include <algorithm>
#include <chrono>

namespace tapehead::inline TAPEHEAD_REAL {

namespace {
SnapshotPlan plan_for(const SnapshotLimits& limits, Trainer& trainer) {
  if (limits.most == 0) return {limits, 0, 0, 0};
  return {limits, trainer.config().train.steps, AttentionHistory::packed_bytes(trainer.snapshot().maps),
          static_cast<std::size_t>(parameter_count(trainer.model().net)) * sizeof(Real)};
}
}  // namespace

SnapshotSeries::SnapshotSeries(const SnapshotLimits& limits, Trainer& trainer, AttentionHistory kept)
    : trainer_(trainer), kept_(std::move(kept)), plan_(plan_for(limits, trainer)) {}

void SnapshotSeries::forget_after(std::uint64_t step) {
  std::erase_if(kept_.snapshots, [step](const PackedSnapshot& s) {
    return s.step > step || s.reason == SnapshotReason::end;  // an end that turned out to be none
  });
  for (PackedSnapshot& s : kept_.snapshots)
    if (!plan_.keeps_parameters(s.step)) s.parameters.clear();
}

bool SnapshotSeries::offer(double training_loss, double exact_match) {
  const std::size_t before = kept_.size();
  const std::uint64_t step = trainer_.steps_done();
  if (plan_.on_grid(step)) {
    take(SnapshotReason::grid, exact_match);
    if (plan_.keeps_parameters(step)) keep_parameters();
  } else if (!kept_.empty()) {
    const auto events = std::ranges::count(kept_.snapshots, SnapshotReason::loss_drop, &PackedSnapshot::reason);
    if (plan_.is_drop(kept_.snapshots.front().loss, kept_.snapshots.back().loss, training_loss, events))
      take(SnapshotReason::loss_drop, exact_match);
  }
  return kept_.size() > before;
}

void SnapshotSeries::finish(double exact_match) {
  if (!plan_.keeps_end()) return;
  if (kept_.empty() || kept_.snapshots.back().step != trainer_.steps_done()) take(SnapshotReason::end, exact_match);
  if (plan_.keeps_parameters_of_end()) keep_parameters();
}

void SnapshotSeries::take(SnapshotReason reason, double exact_match) {
  const auto start = std::chrono::steady_clock::now();
  Snapshot snapshot = trainer_.snapshot();
  snapshot.exact_match = exact_match;
  kept_.add(snapshot, reason);
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void SnapshotSeries::keep_parameters() {
  const CheckpointFile model = store_model(trainer_.config(), {}, trainer_.model());
  kept_.width = model.width;
  kept_.tensors.clear();
  std::vector<std::uint8_t>& to = kept_.snapshots.back().parameters;
  to.clear();
  for (const StoredTensor& tensor : model.parameters) {
    kept_.tensors.push_back({tensor.name, tensor.shape});
    to.insert(to.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
}

}  // namespace tapehead::inline TAPEHEAD_REAL
