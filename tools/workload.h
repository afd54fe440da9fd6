// The standard workloads of `tapehead bench`, as plain data: what is learned from random tokens, how large it is, and
// how many operations a step of it takes.
#pragma once

#include "data/batch.h"
#include "nn/config.h"
#include "train/config.h"

namespace tapehead {

struct Workload {
  std::string name, title;
  ModelConfig model;
  std::int64_t batch, length;
  std::int64_t steps;  // measured ones, unless the user says otherwise

  bool attention_alone() const { return name == "W4"; }
  /// Multiplications and additions in the matrix products of one step: those of forward three times, as backward makes
  /// two products for each. Of causal attention the visible half counts; what is computed twice counts once.
  double operations() const;
  std::int64_t tokens() const;
};

/// Throws ConfigError for a name that does not exist.
Workload find_workload(const std::string& name);

/// AdamW at a constant 1e-3, weight decay 0.01 for matrices, gradients clipped to norm 1.
TrainConfig workload_training();

/// Random tokens with the next ones as targets; of the encoder-decoder, a random source to copy. A function of `seed`
/// and `index` alone.
Batch workload_batch(const Workload& workload, std::uint64_t seed, std::uint32_t index);

}  // namespace tapehead
