// tapehead train: from a task's name to a run folder with a model that has learned it.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <memory>
#include <optional>

#include "autograd/error.h"
#include "tools/command.h"
#include "tools/examine.h"
#include "tools/inspect/live.h"
#include "tools/progress.h"
#include "train/files.h"
#include "train/trainer.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

struct TrainFlags {
  std::string task, data, config, resume, out;
  std::vector<std::string> set;
  std::string stop_when;
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> seed;
  std::optional<std::int64_t> stop_at;
  bool force = false, no_report = false, log_heads = false, live = false;
  std::optional<std::int64_t> snapshots;
  std::int64_t threads = 1;
};

// --- settings: the task's defaults, then the file, then --set, then the options that have a name of their own

void apply(const TrainFlags& flags, Config& config) {
  std::string problems;
  const auto collect = [&](auto set) {
    try {
      set();
    } catch (const ConfigError& e) {
      problems += (problems.empty() ? "" : "\n") + std::string(e.what());
    }
  };
  if (!flags.config.empty()) collect([&] { config.read_toml(flags.config); });
  for (const std::string& assignment : flags.set) collect([&] { config.set(assignment); });
  if (flags.steps) config.train.steps = *flags.steps;
  if (flags.snapshots) config.train.snapshots = *flags.snapshots;
  if (flags.seed) config.seed = static_cast<std::uint64_t>(*flags.seed);
  if (!problems.empty()) throw ConfigError(problems);
}

Config config_of(const TrainFlags& flags) {
  if (!flags.data.empty() && !flags.task.empty() && flags.task != kTextTask)
    throw ConfigError(error_line("train", "--data is a text to learn, and " + in_quotes(flags.task) + " is a task", {},
                                 "leave out one of them"));
  if (flags.task.empty() && flags.config.empty() && flags.data.empty())
    throw ConfigError(
        error_line("train", "neither a task nor a config is given", {}, "tapehead tasks lists the tasks"));
  Config config;
  if (!flags.task.empty()) config = Config::defaults(flags.task);
  if (!flags.data.empty()) config = Config::defaults(kTextTask);
  apply(flags, config);
  return config;
}

// What a run may change when it goes on: how long, how fast, when to look and stop; not what it learns.
Config resumed_config(const TrainFlags& flags) {
  if (!flags.config.empty() || flags.seed || !flags.out.empty() || flags.force)
    throw ConfigError(error_line("train", "--resume goes on with the run's own config, seed and folder", {},
                                 "leave out --config, --seed, --out and --force"));
  const CheckpointFile last = CheckpointFile::load(flags.resume + "/last.ckpt");
  Config config = last.config;
  if (!flags.task.empty() && flags.task != config.task)
    throw ConfigError(error_line("train", flags.resume + " holds a run of " + config.task + ", not of " + flags.task));
  for (const std::string& assignment : flags.set)
    if (!assignment.starts_with("train."))
      throw ConfigError(error_line("train", "--set " + assignment + " would change a run that has begun", {},
                                   "with --resume only train.* can be set"));
  apply(flags, config);
  const std::uint64_t done = last.training ? last.training->step : 0;
  if (flags.stop_at && static_cast<std::uint64_t>(*flags.stop_at) <= done)
    throw ConfigError(
        error_line("train", fmt::format("--stop-at is {}, the run has done {} already", *flags.stop_at, done)));
  if (static_cast<std::uint64_t>(config.train.steps) < done)
    throw ConfigError(
        error_line("train", fmt::format("train.steps is {}, the run has done {} already", config.train.steps, done)));
  return config;
}

// --- signals: the first asks for an orderly end, the second ends at once

volatile std::sig_atomic_t caught_signal = 0;

void on_signal(int signal) {
  caught_signal = signal;
  std::signal(signal, SIG_DFL);
}

void watch_signals() {
  caught_signal = 0;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, on_signal);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away must not end the training
}

// --- what a person reads

std::string headline(const Config& config, std::int64_t parameters, const TrainFlags& flags) {
  const ModelConfig& m = config.model;
  return fmt::format("{}: {} of {} x {}, width {}\n{} parameters, seed {}, {}\n", config.task, name_of(m.kind),
                     counted(m.layers, "layer"), counted(m.heads, "head"), m.width, grouped(parameters), config.seed,
                     counted(flags.threads, "thread"));
}

std::string closing(const Config& config, const TrainResult& result, const std::string& folder, const std::string& rule,
                    bool report, const Command& command) {
  const std::string run = shell_word(folder);
  std::string text;
  if (result.interrupted)
    text = fmt::format("stopped and saved after step {}; go on with: {} train --resume {}\n", result.step,
                       command.program, run);
  else if (result.best_step > 0)
    text = fmt::format("{} reached {} exact match on {} unseen sequences at step {} ({:.1f} s)\n", config.task,
                       percent(result.best.exact_match), grouped(Trainer::kHeldOut), result.best_step, result.seconds);
  if (result.rule_held) text += fmt::format("ended at step {}: {} held\n", result.step, rule);
  if (result.snapshots > 0)
    text += fmt::format("attention kept at {} of training: {:.1f} % of its time\n",
                        counted(static_cast<std::int64_t>(result.snapshots), "moment"),
                        100 * result.snapshot_seconds / std::max(result.seconds, 1e-9));
  return text + fmt::format("run folder: {}\nsee its heads: {} inspect {}\n", folder, command.program, run) +
         (report ? fmt::format("or in a browser: {}/report.html\n", folder) : "");
}

nlohmann::ordered_json summary_json(const Config& config, const TrainResult& result, std::int64_t parameters,
                                    const std::string& folder) {
  return {{"task", config.task},
          {"seed", config.seed},
          {"steps", result.step},
          {"seconds", result.seconds},
          {"loss", json_number(result.best_step ? result.best.loss : NAN)},
          {"exact_match", json_number(result.best_step ? result.best.exact_match : NAN)},
          {"token_accuracy", json_number(result.best_step ? result.best.token_accuracy : NAN)},
          {"parameters", parameters},
          {"run", folder}};
}

// Shows each step; asks for an end when a signal has come.
TrainObserver watch(ProgressDisplay& display, std::uint64_t steps) {
  using Clock = std::chrono::steady_clock;
  struct State {
    Progress progress;
    Clock::time_point start = Clock::now();
    std::uint64_t first = 0;  // step done before this process
    std::int64_t tokens = 0;
  };
  auto state = std::make_shared<State>();
  state->progress.steps = steps;
  TrainObserver observer;
  observer.on_step = [&display, state](const StepReport& report) {
    if (state->tokens == 0) state->first = report.step - 1;
    state->tokens += report.tokens;
    Progress& p = state->progress;
    p.step = report.step;
    p.loss = report.loss;
    const double seconds = std::chrono::duration<double>(Clock::now() - state->start).count();
    p.tokens_per_second = static_cast<double>(state->tokens) / seconds;
    p.seconds_left = seconds / static_cast<double>(p.step - state->first) * static_cast<double>(p.steps - p.step);
    display.update(p, seconds);
  };
  observer.on_evaluation = [&display, state](std::uint64_t, const Evaluation& e) {
    state->progress.exact_match = e.exact_match;
    display.update(state->progress, std::chrono::duration<double>(Clock::now() - state->start).count());
  };
  observer.interrupted = [] { return caught_signal != 0; };
  return observer;
}

// Refuses what cannot fit, from sizes alone: the system would let it be allocated and then end some process.
void require_memory(const ModelConfig& m, std::int64_t batch) {
  const auto C = static_cast<double>(m.width), V = static_cast<double>(m.vocabulary);
  const auto T = static_cast<double>(m.context);
  const bool encodes = m.kind == ModelKind::encoder_decoder;
  double parameters = V * C * (m.tie_embeddings ? 1 : 2) + T * C, a_token = V;
  for (std::int64_t i = 0; i < m.layers; ++i) {
    const LayerConfig layer = m.layer(i);
    const auto F = static_cast<double>(std::max<std::int64_t>(layer.feed_forward, 0));
    const auto heads = static_cast<double>(layer.heads), kv_heads = static_cast<double>(layer.kv_heads);
    const auto D = static_cast<double>(layer.key_width), Dv = static_cast<double>(layer.value_width);
    const double projected = heads * (D + Dv) + kv_heads * (D + Dv);  // columns of q and z, of k and v
    const double rank = static_cast<double>(layer.rank), attentions = encodes ? 3 : 1, blocks = encodes ? 2 : 1;
    parameters += attentions * (rank > 0 ? rank * (projected + 4 * C) : projected * C) + blocks * 2 * C * F;
    a_token += attentions * (projected + 2 * C) + blocks * (2 * C + 2 * F);
  }
  const double activations = static_cast<double>(batch) * T * a_token;
  const double bytes = (4 * parameters + activations) * sizeof(Real);  // values, gradients, two moments
  std::ifstream meminfo("/proc/meminfo");
  double available = -1;
  for (std::string key, unit; meminfo >> key && available < 0; std::getline(meminfo, unit))
    if (key == "MemAvailable:") meminfo >> available;
  available *= 1024;
  if (available >= 0 && bytes > available)
    throw ConfigError(error_line(
        "train", fmt::format("this needs {:.1f} GB at least, {:.1f} GB are free", bytes / 1e9, available / 1e9), {},
        "lower model.width, model.layers or train.batch"));
}

std::unique_ptr<Task> task_of(const TrainOptions& options) {
  const Config& config = options.config;
  if (config.task != kTextTask) return make_task(config.task, config.data);
  if (!options.text)
    throw ConfigError(error_line("train", "the text to learn is missing", {}, "give it with --data FILE"));
  return make_text(config.data, options.text);
}

// Makes the model and lets it read one sequence: what settings contradict each other shows before any file is touched.
// Returns how many parameters it has.
std::int64_t rehearse(const Config& config, const ModelConfig& of_task, const Task& task) {
  Model model(of_task, config.seed);
  const Learner learner(model, config.train, config.seed, 1);
  const Batch batch = BatchSource(task, layout_of(config.model.kind), 1, config.seed).training(1);
  Tape tape(model.parameters);
  NoGrad no_grad(tape);
  tape.training = true;
  record_loss(tape, record_logits(tape, model.net, batch, 0, 1), batch, 0, 1,
              static_cast<Real>(config.train.label_smoothing));
  return parameter_count(model.net);
}

// RUN/report.html.
void write_report(const RunFolder& folder, const TrainFlags& flags) {
  Session session = Session::open(folder.path(), flags.data);
  ExamineOptions options;
  options.run = folder.path();
  options.history = history_of(folder.path());
  options.command = fmt::format("tapehead inspect {} --html FILE", shell_word(name_in_report(folder.path())));
  options.threads = static_cast<int>(flags.threads);
  constexpr std::size_t kBudget = 16'000'000;
  write_file_atomically(folder.file("report.html"), report_html(examine(session, options), kBudget));
}

// Serves the run while it trains: what the observer sees goes to the page, too.
std::unique_ptr<LiveServer> serve(const Config& config, const std::string& folder, TrainObserver& observer,
                                  const Command& command) {
  Report report;
  report.title = report.task = config.task;
  report.summary = make_task(config.task, config.data)->summary();
  report.rule = rule_label(config.task);
  report.config = config.to_toml();
  report.command = fmt::format("tapehead inspect {} --html FILE", shell_word(name_in_report(folder)));
  auto server = std::make_unique<LiveServer>(std::move(report));
  LiveServer* to = server.get();
  observer.on_step = [to, on_step = observer.on_step](const StepReport& r) {
    to->add(Metrics::Step{r.step, r.loss});
    on_step(r);
  };
  observer.on_evaluation = [to, on_evaluation = observer.on_evaluation](std::uint64_t step, const Evaluation& e) {
    to->add(Metrics::Evaluation{step, e.loss, e.token_accuracy, e.exact_match});
    on_evaluation(step, e);
  };
  observer.on_snapshot = [to](const AttentionHistory& history) { to->add(history); };
  if (!command.quiet) command.say("live: " + server->url() + "\n");
  return server;
}

// A page that cannot hold the run, however few snapshots it keeps, is no failure of the training.
bool try_report(const RunFolder& folder, const TrainFlags& flags, const Command& command) {
  try {
    write_report(folder, flags);
    return true;
  } catch (const ConfigError& e) {
    if (!command.quiet) command.say(std::string("report.html is left out: ") + e.what() + "\n");
    return false;
  }
}

void run_train(const TrainFlags& flags, Command& command) {
  TrainOptions options;
  options.resume = !flags.resume.empty();
  std::optional<RunFolder> folder;
  if (options.resume) folder.emplace(prepare_run_folder(flags.resume, false, true));  // before what it holds is read
  options.config = options.resume ? resumed_config(flags) : config_of(flags);
  options.stop_at = static_cast<std::uint64_t>(flags.stop_at.value_or(0));
  options.threads = static_cast<int>(flags.threads);
  options.log_heads = flags.log_heads;
  if (!flags.stop_when.empty()) options.stop_when = StopRule::parse(flags.stop_when);
  set_threads(flags.threads);
  if (!flags.data.empty()) options.text = Text::decode(read_file(flags.data), flags.data);
  options.config.check();
  const std::unique_ptr<Task> task = task_of(options);
  const ModelConfig model = options.config.model_for(*task);
  require_memory(model, options.config.train.batch);
  const std::int64_t parameters = rehearse(options.config, model, *task);
  if (!folder)
    folder.emplace(flags.out.empty() ? new_run_folder(options.config.task)
                                     : prepare_run_folder(flags.out, flags.force, false));
  ProgressDisplay display(stderr, detect_terminal(STDERR_FILENO), command.quiet);
  TrainObserver observer = watch(display, static_cast<std::uint64_t>(options.config.train.steps));
  observer.on_ready = [&] {
    command.start();
    watch_signals();
    if (!command.quiet) command.say(headline(options.config, parameters, flags));
  };
  std::unique_ptr<LiveServer> live;
  if (flags.live) live = serve(options.config, folder->path(), observer, command);
  const TrainResult result = train(options, *folder, observer);
  const double telling = live ? live->seconds() : 0, serving = live ? live->serving_seconds() : 0;
  live.reset();
  display.finish();
  const bool reports = !flags.no_report && !result.interrupted && try_report(*folder, flags, command);
  if (!command.quiet) command.say(closing(options.config, result, folder->path(), flags.stop_when, reports, command));
  if (flags.live && !command.quiet)
    command.say(
        fmt::format("live page: {:.1f} % of the training's time; beside it threads of its own worked {:.0f} ms\n",
                    100 * telling / std::max(result.seconds, 1e-9), 1000 * serving));
  command.answer(summary_json(options.config, result, parameters, folder->path()));
  if (caught_signal != 0) command.exit_code = 128 + SIGINT;
}

}  // namespace

void add_train(Options& options, Command& command) {
  auto flags = std::make_shared<TrainFlags>();
  options.add("task", flags->task, "what to learn; tapehead tasks lists them").type("TASK");
  options.add("--data", flags->data, "a text to learn instead, character by character").type("FILE");
  options.add("--config", flags->config, "settings from a TOML file").type("FILE");
  options.add("--set", flags->set, "one setting: docs/config.md lists them").type("KEY=VALUE");
  options.add("--steps", flags->steps, "the same as --set train.steps=N");
  add_seed(options, flags->seed, "of everything random; 1 unless given");
  options.add("--out", flags->out, "run folder; else the next free runs/TASK-001").type("DIR");
  options.flag("--force", flags->force, "replace a run that --out holds");
  options.add("--resume", flags->resume, "go on with an interrupted run").type("DIR");
  options.add("--stop-at", flags->stop_at, "save and end after this step").range(1, 1'000'000'000);
  options.add("--snapshots", flags->snapshots, "the same as --set train.snapshots=N");
  options.flag("--live", flags->live, "show it in a browser while it trains");
  options.flag("--log-heads", flags->log_heads, "measures of heads into metrics.jsonl");
  options.add("--stop-when", flags->stop_when, "end early: 'pattern_match>0.95'").type("RULE");
  options.flag("--no-report", flags->no_report, "leave out report.html");
  options.flag("--quiet", command.quiet, "print nothing but errors and --json");
  add_threads(options, flags->threads);
  options.run([flags, &command] { run_train(*flags, command); });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
