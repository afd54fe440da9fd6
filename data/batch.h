// A batch of examples laid out for one kind of model. Buffers are reused from step to step.
#pragma once

#include "data/task.h"

namespace tapehead {

enum class Layout { joined, aligned, split };  // decoder-only; encoder-only; encoder-decoder

struct Batch {
  std::int64_t sequences = 0;         // B
  std::int64_t source_length = 0;     // S; 0 unless split
  std::int64_t target_length = 0;     // T, the length of inputs and targets
  std::vector<std::int32_t> source;   // [B, S]
  std::vector<std::int32_t> inputs;   // [B, T]
  std::vector<std::int32_t> targets;  // [B, T]; kIgnore where not counted
  std::vector<std::int32_t> links;    // [B, T]; column of the ideal pattern in row t; -1 where not counted
  std::int64_t counted = 0;           // targets that enter the loss
  static constexpr std::int32_t kIgnore = -1;
};

/// joined:  inputs = source | target without its last token; row S + m predicts target[m] from column link[m].
/// aligned: inputs = source, row m predicts target[m]; throws ConfigError when the task is not aligned.
/// A task that continues its source is joined as it is: inputs = source, row m predicts target[m].
/// split:   source as it is, inputs = separator, then target without its last token; row m predicts target[m].
/// Allocates nothing when the batch last held as many tokens. Examples of unequal lengths throw ShapeError.
void lay_out(const Task& task, const std::vector<Example>& examples, Layout layout, Batch& batch);

/// The longest sequence, in tokens, that a model of this layout must take: its least context.
std::int64_t longest_sequence(const Task& task, Layout layout);

/// Training and evaluation batches of one task, which must outlive it.
class BatchSource {
 public:
  /// Throws ConfigError when the layout does not suit the task.
  BatchSource(const Task& task, Layout layout, std::int64_t sequences, std::uint64_t seed);
  /// The batch of step `step` (from 1): a function of (seed, step) alone, without held-out sequences. Valid until the
  /// next call, which allocates nothing.
  const Batch& training(std::uint32_t step);
  /// `count` held-out sequences, the same for every call with the same seed.
  Batch held_out(std::int64_t count, std::uint64_t seed) const;

 private:
  const Task& task_;
  Layout layout_;
  std::uint64_t seed_;
  std::vector<Example> examples_;
  Batch batch_;
};

}  // namespace tapehead
