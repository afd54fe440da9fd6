#include "train/trainer.h"

#include <omp.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>

#include "autograd/error.h"
#include "train/map_measures.h"
#include "train/metrics_log.h"
#include "train/snapshot_series.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {
std::unique_ptr<Task> task_of(const Config& config, std::shared_ptr<const Text> text) {
  return config.task == kTextTask ? make_text(config.data, std::move(text)) : make_task(config.task, config.data);
}
// With the fingerprint that a text has given its settings.
Config with_data(Config config, const Task& task) {
  config.data = task.knobs();
  return config;
}
}  // namespace

Trainer::Trainer(const Config& config, int threads, std::shared_ptr<const Text> text)
    : task_((config.check(), task_of(config, std::move(text)))),
      config_(with_data(config, *task_)),
      model_(std::make_unique<Model>(config.model_for(*task_), config.seed)),
      data_(*task_, layout_of(config.model.kind), config.train.batch, config.seed),
      held_out_(data_.held_out(kHeldOut, config.seed)),
      probe_(data_.held_out(kProbe, config.seed)),
      probe_tape_(model_->parameters),
      learner_(*model_, config.train, config.seed, threads) {}

StepReport Trainer::step() { return learner_.step(data_.training(static_cast<std::uint32_t>(learner_.next_step()))); }

namespace {
// Ops on this thread alone: on a busy machine, a fork and a join for each of them cost more than a small probe.
class OneThread {
 public:
  OneThread() { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = omp_get_max_threads();
};
}  // namespace

Snapshot Trainer::snapshot() {
  const OneThread here;
  probe_tape_.reset();
  NoGrad no_grad(probe_tape_);
  probe_tape_.keep_weights = true;
  const Tensor logits = record_logits(probe_tape_, model_->net, probe_, 0, probe_.sequences);
  Snapshot s;
  s.step = steps_done();
  s.loss = double{record_loss(probe_tape_, logits, probe_, 0, probe_.sequences).item()};
  s.exact_match = std::numeric_limits<double>::quiet_NaN();
  s.maps = attention_maps(probe_tape_, *model_, probe_, 0, 0, task_->vocabulary().tokens());
  return s;
}

std::vector<PatternMeasures> Trainer::measure_probe() {
  const OneThread here;
  return measure_patterns(*model_, probe_, task_->vocabulary().tokens());
}

CheckpointFile Trainer::checkpoint() {
  CheckpointFile file = store_model(config_, task_->vocabulary().tokens(), *model_);
  file.step = steps_done();
  file.loss = file.exact_match = file.token_accuracy = std::numeric_limits<double>::quiet_NaN();
  file.training.emplace();
  file.training->step = steps_done();
  file.training->moments = store_moments(*model_, learner_.optimizer());
  return file;
}

void Trainer::load(const CheckpointFile& file, const std::string& path) {
  if (!file.training)
    throw FileError(error_line("checkpoint", path + " holds no training state", {}, "resume from a last.ckpt"));
  if (file.width != sizeof(Real))
    throw FileError(error_line("checkpoint",
                               path + " was trained in " + (file.width == 8 ? "double" : "float") + " precision", {},
                               file.width == 8 ? "resume with --double" : "resume without --double"));
  *model_ = load_model(file, model_->config, path);
  load_moments(file.training->moments, *model_, learner_.optimizer(), path);
  learner_.optimizer().set_steps(file.training->step);
}

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A run in progress: what it has reached and what of it is on disk.
class Run {
 public:
  Run(const TrainOptions& options, const RunFolder& folder, const TrainObserver& observer)
      : folder_(folder),
        trainer_(options.config, options.threads, options.text),
        snapshots_({.most = options.config.train.snapshots}, trainer_, kept_before(options)),
        log_heads_(options.log_heads),
        stop_when_(options.stop_when) {
    if (options.resume) resume();
    if (observer.on_ready) observer.on_ready();
    write_file_atomically(folder_.file("config.toml"), trainer_.config().to_toml());
    log_.emplace(folder_.file("metrics.jsonl"), trainer_.steps_done());
    if (snapshots_.kept().empty()) snapshots_.offer(kUnknown, kUnknown);
    if (observer.on_snapshot && !snapshots_.kept().empty()) observer.on_snapshot(snapshots_.kept());
    if (!options.resume) save();  // a run that is killed at any time can go on
  }

  void step(const TrainObserver& observer) {
    const Clock::time_point start = Clock::now();
    const StepReport report = trainer_.step();
    log_->training(report.step, report.loss, report.learning_rate, report.grad_norm,
                   static_cast<double>(report.tokens) / std::max(seconds_since(start), 1e-9));
    if (observer.on_step) observer.on_step(report);
    exact_match_ = kUnknown;
    const TrainConfig& train = trainer_.config().train;
    const auto number = static_cast<std::int64_t>(report.step);
    if (number % train.eval_every == 0 || number == train.steps) evaluate(observer);
    if (snapshots_.offer(report.loss, exact_match_) && observer.on_snapshot) observer.on_snapshot(snapshots_.kept());
    constexpr double kSecondsBetweenSaves = 10;
    if (seconds_since(saved_) > kSecondsBetweenSaves) save();
  }

  bool finished() const {
    const TrainConfig& train = trainer_.config().train;
    const bool reached = state_.best_step > 0 && state_.best_metric >= train.target;
    return reached || rule_held_ || static_cast<std::int64_t>(trainer_.steps_done()) >= train.steps;
  }

  /// Puts everything on disk, last.ckpt at the end: a process that is killed in between leaves beside an older one
  /// only what will come again.
  void save() {
    if (best_) best_->save(folder_.file("best.ckpt"));
    best_.reset();
    snapshots_.kept().save(folder_.file("snapshots.bin"));
    CheckpointFile last = trainer_.checkpoint();
    state_.step = trainer_.steps_done();
    state_.moments.swap(last.training->moments);
    last.training = state_;
    state_.moments.clear();
    last.save(folder_.file("last.ckpt"));
    saved_ = Clock::now();
  }
  void finish(const TrainObserver& observer) {
    const std::size_t before = snapshots_.kept().size();
    snapshots_.finish(exact_match_);
    if (observer.on_snapshot && snapshots_.kept().size() > before) observer.on_snapshot(snapshots_.kept());
    save();
  }

  TrainResult result() const {
    TrainResult r;
    r.step = trainer_.steps_done();
    r.seconds = seconds_since(start_);
    r.best = best_evaluation_;
    r.best_step = state_.best_step;
    r.rule_held = rule_held_;
    r.snapshots = snapshots_.kept().size();
    r.snapshot_seconds = snapshots_.seconds();
    return r;
  }

 private:
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  AttentionHistory kept_before(const TrainOptions& options) const {
    // A run without its maps can go on: only what they showed of the past is gone.
    const std::string path = folder_.file("snapshots.bin");
    if (!options.resume || !std::filesystem::exists(path)) return {};
    try {
      return AttentionHistory::load(path);
    } catch (const FileError& e) {
      throw FileError(std::string(e.what()) + " Hint: remove it to go on without the earlier maps");
    }
  }

  void resume() {
    const std::string path = folder_.file("last.ckpt");
    CheckpointFile last = CheckpointFile::load(path);
    trainer_.load(last, path);
    snapshots_.forget_after(trainer_.steps_done());
    state_ = std::move(*last.training);
    state_.moments.clear();
    best_evaluation_ = {state_.best_loss, state_.best_token_accuracy, state_.best_metric};
  }

  // Logs every head's measures, and asks whether the rule to stop holds: for a measure of heads, of any of them.
  void look_at_heads(const Evaluation& e) {
    const bool heads_decide = stop_when_ && stop_when_->is_of_heads();
    if (stop_when_ && !heads_decide)
      rule_held_ = stop_when_->holds(stop_when_->measure == "loss"          ? e.loss
                                     : stop_when_->measure == "exact_match" ? e.exact_match
                                                                            : e.token_accuracy);
    if (!log_heads_ && !heads_decide) return;
    for (const PatternMeasures& head : trainer_.measure_probe()) {
      if (log_heads_)
        log_->head(trainer_.steps_done(), head.place.attention.kind, head.place.attention.layer,
                   static_cast<int>(head.place.head), measure_names(), head.values);
      for (std::size_t i = 0; heads_decide && i < head.values.size(); ++i)
        if (measure_names()[i] == stop_when_->measure) rule_held_ |= stop_when_->holds(head.values[i]);
    }
  }

  void evaluate(const TrainObserver& observer) {
    const Evaluation e = trainer_.evaluate();
    log_->evaluation(trainer_.steps_done(), e.loss, e.token_accuracy, e.exact_match);
    if (observer.on_evaluation) observer.on_evaluation(trainer_.steps_done(), e);
    exact_match_ = e.exact_match;
    look_at_heads(e);
    // The higher exact match, then the lower loss; what is not a number is never better.
    const bool first = state_.best_step == 0;
    const bool better = first ? std::isfinite(e.loss)
                              : e.exact_match > state_.best_metric ||
                                    (e.exact_match == state_.best_metric && e.loss < state_.best_loss);
    if (!better) return;
    state_.best_metric = e.exact_match;
    state_.best_loss = e.loss;
    state_.best_token_accuracy = e.token_accuracy;
    state_.best_step = trainer_.steps_done();
    best_evaluation_ = e;
    best_ = store_model(trainer_.config(), trainer_.task().vocabulary().tokens(), trainer_.model());
    best_->step = trainer_.steps_done();
    best_->loss = e.loss;
    best_->exact_match = e.exact_match;
    best_->token_accuracy = e.token_accuracy;
  }

  const RunFolder& folder_;
  Trainer trainer_;
  SnapshotSeries snapshots_;
  bool log_heads_, rule_held_ = false;
  std::optional<StopRule> stop_when_;
  std::optional<MetricsLog> log_;
  TrainingState state_;                 // moments only while saving
  std::optional<CheckpointFile> best_;  // not yet on disk
  Evaluation best_evaluation_;
  double exact_match_ = kUnknown;  // of an evaluation at the present step
  const Clock::time_point start_ = Clock::now();
  Clock::time_point saved_ = start_;
};

}  // namespace

namespace {
// Saves the state before the step that failed; when that fails for another reason, both are told.
void save_after(const std::exception& failure, Run& run) {
  try {
    run.save();
  } catch (const std::exception& also) {
    const std::string first = failure.what(), second = also.what();
    throw Error(first == second ? first : first + "\n" + second);
  }
}
}  // namespace

TrainResult train(const TrainOptions& options, const RunFolder& folder, const TrainObserver& observer) {
  Run run(options, folder, observer);
  bool interrupted = false;
  while (!run.finished() && !interrupted) {
    try {
      run.step(observer);
    } catch (const std::exception& failure) {
      save_after(failure, run);
      throw;
    }
    interrupted = (options.stop_at > 0 && run.result().step >= options.stop_at) ||
                  (observer.interrupted && observer.interrupted());
  }
  run.finish(observer);
  TrainResult result = run.result();
  result.interrupted = interrupted && !run.finished();
  return result;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
