// A run's attention over training: snapshots.bin, described in checkpoints/README.md.
//
// What all snapshots share (tokens, masks, the task's rule) is kept once, and of each map its visible weights alone, in
// 16 bits: a run of 200 snapshots of 8 heads over 32 tokens takes 1.7 MB, on disk and in memory.
#pragma once

#include "train/attention_map.h"
#include "train/checkpoint_file.h"

namespace tapehead {

enum class SnapshotReason : std::uint8_t { grid, loss_drop, end };

/// One snapshot as it is kept.
struct PackedSnapshot {
  std::uint64_t step = 0;
  double loss = 0, exact_match = 0;
  SnapshotReason reason = SnapshotReason::grid;
  std::vector<std::uint16_t> weights;    // visible cells of each head, row by row: 65534 is 1; 65535 is no weight
  std::vector<std::uint8_t> parameters;  // of every tensor in order, little-endian; none: not kept
};

class AttentionHistory {
 public:
  /// Throws Error when its heads are others than those of the snapshots before.
  void add(const Snapshot& snapshot, SnapshotReason reason);
  /// Weights within 8e-6 of what was added; NaN where there was no weight.
  Snapshot at(std::size_t index) const;
  std::vector<Snapshot> all() const;
  std::size_t size() const { return snapshots.size(); }
  bool empty() const { return snapshots.empty(); }

  std::vector<PackedSnapshot> snapshots;  // by step
  std::vector<AttentionMap> heads;        // without weights
  std::vector<NamedShape> tensors;        // what a snapshot's parameters are, in their order
  std::uint8_t width = 4;                 // bytes of a parameter

  /// Bytes that a snapshot of such heads takes.
  static std::size_t packed_bytes(const std::vector<AttentionMap>& heads);
  /// Parameters of a snapshot that has some, as in a checkpoint.
  std::vector<StoredTensor> parameters_of(const PackedSnapshot& snapshot) const;

  /// The same envelope as a checkpoint. Throws FileError, also for contents that load would refuse.
  void save(const std::string& path) const;
  static AttentionHistory load(const std::string& path);
};

}  // namespace tapehead
