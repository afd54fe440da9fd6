// One training run: from a config and a folder to a model that has learned its task.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "data/text.h"
#include "train/attention_history.h"
#include "train/checkpoint.h"
#include "train/learner.h"
#include "train/measures.h"
#include "train/run_folder.h"
#include "train/snapshot_plan.h"
#include "train/stop_rule.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// Everything that a step changes. step() is a function of the config and the step's number alone.
class Trainer {
 public:
  /// Throws ConfigError for settings that contradict each other.
  Trainer(const Config& config, int threads, std::shared_ptr<const Text> text = {});

  /// Learner::step() on the batch that the task draws for it.
  StepReport step();
  Evaluation evaluate() { return learner_.evaluate(held_out_); }
  /// The probe's attention and loss as they are now.
  Snapshot snapshot();
  /// Measures of every head on the probe.
  std::vector<PatternMeasures> measure_probe();

  /// The whole state as a checkpoint; load() makes the next step the one that would have followed.
  CheckpointFile checkpoint();
  void load(const CheckpointFile& file, const std::string& path);

  std::uint64_t steps_done() const { return learner_.optimizer().steps(); }
  const Config& config() const { return config_; }
  const Task& task() const { return *task_; }
  Model& model() { return *model_; }
  const Batch& held_out() const { return held_out_; }  // kHeldOut unseen sequences

  static constexpr std::int64_t kHeldOut = 1000, kProbe = 16;

 private:
  std::unique_ptr<Task> task_;
  Config config_;
  std::unique_ptr<Model> model_;
  BatchSource data_;
  Batch held_out_, probe_;
  Tape probe_tape_;
  Learner learner_;
};

struct TrainOptions {
  Config config;
  bool resume = false;        // go on from the folder's last.ckpt
  std::uint64_t stop_at = 0;  // save and end after this step, as an interruption would; 0: no
  int threads = 1;
  std::shared_ptr<const Text> text = {};   // what the task "text" learns
  bool log_heads = false;                  // measures of every head into metrics.jsonl, at every evaluation
  std::optional<StopRule> stop_when = {};  // end after an evaluation for which this holds
};

/// What a caller may watch and decide; none of it changes the result.
struct TrainObserver {
  std::function<void()> on_ready;  // everything is read and checked; from here on files are written
  std::function<void(const StepReport&)> on_step;
  std::function<void(std::uint64_t step, const Evaluation&)> on_evaluation;
  std::function<void(const AttentionHistory&)> on_snapshot;  // there is one more
  std::function<bool()> interrupted;                         // asked after every step: true saves and ends
};

struct TrainResult {
  std::uint64_t step = 0;  // at which training ended
  double seconds = 0;
  Evaluation best;  // of best.ckpt
  std::uint64_t best_step = 0;
  bool interrupted = false;
  bool rule_held = false;       // it ended because of stop_when
  std::size_t snapshots = 0;    // kept of the whole run
  double snapshot_seconds = 0;  // of `seconds`, spent on taking them
};

/// Trains until train.steps, or until exact match on held-out data reaches train.target. Writes config.toml,
/// metrics.jsonl, last.ckpt, best.ckpt and snapshots.bin to the folder. When a step fails the state before it is saved.
TrainResult train(const TrainOptions& options, const RunFolder& folder, const TrainObserver& observer);

}  // namespace tapehead::inline TAPEHEAD_REAL
