// A trained model taken from a file, with its task: where eval, generate and inspect begin.
#pragma once

#include <memory>

#include "data/batch.h"
#include "train/checkpoint.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct Session {
  std::string path;  // of the checkpoint
  CheckpointFile file;
  std::unique_ptr<Task> task;
  std::unique_ptr<Model> model;

  /// From a run folder (its best.ckpt) or a checkpoint file. Throws FileError.
  /// `text` is the file that a model of text draws unseen sequences from; empty: there are none.
  static Session open(const std::string& run_or_checkpoint, const std::string& text = "");

  Layout layout() const { return layout_of(file.config.model.kind); }
  const Vocabulary& vocabulary() const { return task->vocabulary(); }
  /// `count` unseen sequences.
  Batch held_out(std::int64_t count, std::uint64_t seed) const;
  /// "copy, decoder of 2 layers x 4 heads, width 64, 101,376 parameters, step 75"
  std::string describe() const;
};

/// A prompt `source | target`, cut at the separator; without one all of it is source.
struct Prompt {
  std::vector<std::int32_t> source, target;
};
/// Throws ConfigError for a token that is not in the vocabulary, or a second separator.
Prompt read_prompt(const Task& task, const std::string& text);
/// A sequence of one's own for the model to read: a prompt, which the task answers unless a target is given; for a
/// model of text its characters, of which each predicts the next.
Batch read_sequence(const Session& session, const std::string& typed);

}  // namespace tapehead::inline TAPEHEAD_REAL
