// A checkpoint on disk: everything needed to use a model, and, to go on training it, the optimizer's state.
//
// The format is described in checkpoints/README.md: magic, version, length and CRC-32 around a cereal portable binary
// payload of fixed-width types, little-endian. It holds no path, time or thread count: same training, same bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/config.h"

namespace tapehead {

struct StoredTensor {
  std::string name;  // "blocks.0.attn.q.weight"
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> bytes;  // little-endian IEEE 754, row-major, of the file's `width`
  bool operator==(const StoredTensor&) const = default;
};

struct TrainingState {
  std::uint64_t step = 0;  // steps done; data position and random state follow from seed and step
  std::uint64_t best_step = 0;  // at which best.ckpt was taken; 0: not evaluated yet. Its figures:
  double best_metric = 0;       // exact match
  double best_token_accuracy = 0;
  double best_loss = 0;
  std::vector<StoredTensor> moments;  // "adamw.m", "adamw.v" of each parameter
};

struct CheckpointFile {
  Config config;  // loaded, model.vocabulary is the number of tokens
  std::vector<std::string> vocabulary;
  std::uint8_t width = 4;  // bytes of a number: 4 float, 8 double
  std::vector<StoredTensor> parameters;
  std::uint64_t step = 0;  // at which the parameters were taken
  double loss = 0, exact_match = 0,
         token_accuracy = 0;  // on held-out data at that step; NaN before the first evaluation
  std::optional<TrainingState> training;

  /// Writes beside `path`, syncs, and renames over it: a crash leaves the old file or the new one. Throws FileError,
  /// also for contents that load would refuse.
  void save(const std::string& path) const;
  /// Throws FileError naming the file and what is wrong: missing, foreign, truncated, damaged, too new.
  static CheckpointFile load(const std::string& path);
};

struct NamedShape {
  std::string name;
  std::vector<std::int64_t> shape;
};
/// What keeps the tensors of a file from filling a model, or "" when names and shapes are the same, in any order:
/// "missing blocks.4.norm1.weight; unexpected pos.weight; head.weight is [65, 128], expected [65, 256]".
std::string differences(const std::vector<NamedShape>& expected, const std::vector<StoredTensor>& found);

}  // namespace tapehead
