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
};

struct TrainingState {
  std::uint64_t step = 0;  // steps done; data position and random state follow from seed and step
  double best_metric = 0;  // exact match of best.ckpt
  std::uint64_t best_step = 0;
  std::vector<StoredTensor> moments;  // "adamw.m", "adamw.v" of each parameter
};

struct CheckpointFile {
  Config config;
  std::vector<std::string> vocabulary;
  std::uint8_t width = 4;  // bytes of a number: 4 float, 8 double
  std::vector<StoredTensor> parameters;
  std::uint64_t step = 0;  // at which the parameters were taken
  double loss = 0, exact_match = 0,
         token_accuracy = 0;  // on held-out data at that step; NaN before the first evaluation
  std::optional<TrainingState> training;

  /// Writes beside `path`, syncs, and renames over it: a crash leaves the old file or the new one. Throws FileError.
  void save(const std::string& path) const;
  /// Throws FileError naming the file and what is wrong: missing, foreign, truncated, damaged, too new.
  static CheckpointFile load(const std::string& path);
};

}  // namespace tapehead
