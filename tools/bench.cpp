// tapehead bench: how long one training step of a standard workload takes, or one token that it says, to be paired with
// anything.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "autograd/attention.h"
#include "autograd/error.h"
#include "autograd/kernels/peak.h"
#include "nn/generate.h"
#include "tools/command.h"
#include "tools/workload.h"
#include "train/learner.h"
#include "train/safetensors.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::uint32_t kBatches = 20;  // used in turn
constexpr std::int64_t kPrompt = 8;     // tokens that are given before a model says its own
const char* const kRealName = sizeof(Real) == 4 ? "f32" : "f64";

struct BenchFlags {
  std::string workload, dump;
  std::optional<std::int64_t> steps, length, batch, width, vocabulary;
  std::int64_t threads = 1;
  bool ops = false, decode = false, no_peak = false;
};

std::vector<std::int64_t> sizes_of(const Shape& shape) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(static_cast<std::size_t>(shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis) sizes.push_back(shape[axis]);
  return sizes;
}

// What is measured: a function that makes one step and returns its loss, and its state for another program.
class Steps {
 public:
  virtual ~Steps() = default;
  virtual double step() = 0;
  virtual void describe(SafetensorsWriter& file) = 0;
  virtual std::int64_t parameters() const = 0;
  virtual Tape& tape() = 0;
};

ModelConfig with_context(const Workload& w) {
  ModelConfig model = w.model;
  model.context = w.length;
  return model;
}

void add_parameters(SafetensorsWriter& file, const Model& model) {
  for (const NamedParameter& p : unique_parameters(model.net))
    file.add("param/" + p.name, sizes_of(p.parameter.shape), model.parameters.value(p.parameter));
}

class TrainingSteps : public Steps {
 public:
  TrainingSteps(const Workload& w, int threads)
      : model_(with_context(w), kSeed), learner_(model_, workload_training(), kSeed, threads) {
    for (std::uint32_t i = 0; i < kBatches; ++i) batches_.push_back(workload_batch(w, kSeed, i));
  }
  double step() override { return learner_.step(batches_[(learner_.next_step() - 1) % kBatches]).loss; }
  std::int64_t parameters() const override { return parameter_count(model_.net); }
  Tape& tape() override { return learner_.shards().tape(); }
  void describe(SafetensorsWriter& file) override {
    add_parameters(file, model_);
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      const Batch& b = batches_[i];
      const std::string number = std::to_string(i);
      const std::vector<std::int64_t> shape = {b.sequences, b.target_length};
      file.add("batch/" + number + "/inputs", shape, b.inputs);
      file.add("batch/" + number + "/targets", shape, b.targets);
      if (b.source_length) file.add("batch/" + number + "/source", {b.sequences, b.source_length}, b.source);
    }
  }

 private:
  Model model_;
  Learner learner_;
  std::vector<Batch> batches_;
};

// Attention alone: loss = sum(attention(q, k, v) * g), a head at a time, so that only one head's gradient of the
// product lies beside the output. The constant g has the numbers of q.
class AttentionSteps : public Steps {
 public:
  explicit AttentionSteps(const Workload& w) : shape_{w.batch, w.model.heads, w.length, w.model.width / w.model.heads} {
    Initialiser init(set_, kSeed);
    for (Parameter& p : inputs_) p = init.normal(shape_, 1);
  }
  double step() override {
    tape_.reset();
    set_.zero_grad();
    const Tensor q = tape_.param(inputs_[0]), k = tape_.param(inputs_[1]), v = tape_.param(inputs_[2]);
    Attention options;
    options.mask = Mask::causal();
    const Tensor out = attention(q, k, v, options), g = detach(q);
    Tensor loss;
    for (Index head = 0; head < shape_[1]; ++head) {
      const Tensor part = sum(mul(slice(out, 1, head, head + 1), slice(g, 1, head, head + 1)));
      loss = loss.defined() ? loss + part : part;
    }
    tape_.backward(loss);
    return double{loss.item()};
  }
  std::int64_t parameters() const override { return 0; }
  Tape& tape() override { return tape_; }
  void describe(SafetensorsWriter& file) override {
    for (std::size_t i = 0; i < 4; ++i)
      file.add(std::string("in/") + "qkvg"[i], sizes_of(shape_), std::as_const(set_).value(inputs_[i % 3]));
  }

 private:
  Shape shape_;
  ParameterSet set_;
  std::array<Parameter, 3> inputs_;  // q, k, v
  Tape tape_{set_};
};

std::unique_ptr<Steps> prepare(const Workload& w, int threads) {
  if (w.attention_alone()) return std::make_unique<AttentionSteps>(w);
  return std::make_unique<TrainingSteps>(w, threads);
}

SafetensorsWriter facts_of(const Workload& w) {
  SafetensorsWriter file;
  const TrainConfig train = workload_training();
  const nlohmann::ordered_json facts = {{"workload", w.name},
                                        {"kind", name_of(w.model.kind)},
                                        {"layers", w.model.layers},
                                        {"width", w.model.width},
                                        {"heads", w.model.heads},
                                        {"feed_forward", w.model.layer(0).feed_forward},
                                        {"vocabulary", w.model.vocabulary},
                                        {"bias", w.model.bias},
                                        {"batch", w.batch},
                                        {"length", w.length},
                                        {"learning_rate", train.learning_rate},
                                        {"beta1", train.beta1},
                                        {"beta2", train.beta2},
                                        {"eps", train.eps},
                                        {"weight_decay", train.weight_decay},
                                        {"clip", train.clip}};
  file.note("workload", facts.dump());
  return file;
}

void dump(const Workload& w, Steps& steps, const std::string& path) {
  SafetensorsWriter file = facts_of(w);
  steps.describe(file);
  file.write(path);
}

// Seconds of each of `count` calls.
template <class F>
std::vector<double> measure(std::int64_t count, F f) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const Clock::time_point start = Clock::now();
    f();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return seconds;
}

double median(std::vector<double> x) {
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

// Where the time of one more step went, by op: of its last shard, on one thread.
std::string op_table(Steps& steps) {
  struct Row {
    double forward = 0, backward = 0;
    int calls = 0;
  };
  std::map<std::string, Row> rows;
  Row total;
  std::string op;
  steps.tape().timed = true;
  steps.step();
  for (std::size_t i = 0; i < steps.tape().size(); ++i) {
    const Node& n = steps.tape().at(i).node();
    const bool saved = std::string_view(n.op) == "saved";  // what an op saves is part of it
    if (!saved) op = n.op;
    Row& row = rows[op];
    for (Row* r : {&row, &total}) {
      r->forward += n.forward_seconds;
      r->backward += n.backward_seconds;
      r->calls += !saved;
    }
  }
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.forward + a.second.backward > b.second.forward + b.second.backward;
  });
  sorted.emplace_back("total", total);
  std::string table =
      fmt::format("{:<16}{:>7}{:>14}{:>14}{:>9}\n", "op", "nodes", "forward us", "backward us", "share");
  for (const auto& [name, r] : sorted)
    table += fmt::format("{:<16}{:>7}{:>14.1f}{:>14.1f}{:>7.1f} %\n", name, r.calls, r.forward * 1e6, r.backward * 1e6,
                         100 * (r.forward + r.backward) / (total.forward + total.backward));
  return table;
}

double peak_rss_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// The workload with the sizes that were asked for; heads keep their width.
Workload resized(const BenchFlags& flags) {
  Workload w = find_workload(flags.workload);
  w.length = flags.length.value_or(w.length);
  w.batch = flags.batch.value_or(w.batch);
  w.model.vocabulary = flags.vocabulary.value_or(w.model.vocabulary);
  if (!flags.width) return w;
  const std::int64_t of_head = w.model.width / w.model.heads;
  if (*flags.width % of_head != 0)
    throw ConfigError(error_line("bench", fmt::format("width {} is no multiple of {}, the width of a head of {}",
                                                      *flags.width, of_head, w.name)));
  w.model.width = *flags.width;
  w.model.heads = *flags.width / of_head;
  return w;
}

// One sequence from a prompt to the context's end, again and again: the most likely tokens, with kept keys and values.
void run_decoding(const Workload& w, const BenchFlags& flags, Command& command) {
  if (w.attention_alone() || w.model.kind != ModelKind::decoder)
    throw ConfigError(error_line("bench", w.name + " is no decoder, which alone says one token after another", {},
                                 "choose W0 to W3 or W5"));
  if (w.length <= kPrompt)
    throw ConfigError(error_line("bench", fmt::format("the prompt alone has {} tokens", kPrompt), {}, "raise --seq"));
  command.start();
  ModelConfig config = with_context(w);
  config.init_std = 0.2;  // smaller first weights would repeat one token, and no comparison would see a wrong cache
  Model model(config, kSeed);
  const std::vector<std::int32_t> inputs = workload_batch(w, kSeed, 0).inputs;
  const std::vector<std::int32_t> prompt(inputs.begin(), inputs.begin() + kPrompt);
  if (!flags.dump.empty()) {
    SafetensorsWriter file = facts_of(w);
    add_parameters(file, model);
    file.add("prompt", {kPrompt}, prompt);
    file.write(flags.dump);
  }
  const std::int64_t count = w.length - kPrompt;
  std::vector<std::int32_t> said;
  const std::vector<double> times =
      measure(flags.steps.value_or(5), [&] { said = generate(model, prompt, {}, count).tokens; });
  const double seconds = median(times) / static_cast<double>(count);
  command.say(fmt::format("{}: {}, {} after {}, {}\n{:.3f} ms a token, {:.0f} tokens/s, peak memory {:.0f} MiB\n",
                          w.name, w.title, counted(count, "token"), kPrompt, counted(flags.threads, "thread"),
                          seconds * 1e3, 1 / seconds, peak_rss_mib()));
  command.answer({{"workload", w.name},
                  {"threads", flags.threads},
                  {"real", kRealName},
                  {"steps", times.size()},
                  {"ms_token", seconds * 1e3},
                  {"tokens_per_second", 1 / seconds},
                  {"peak_rss_mib", peak_rss_mib()},
                  {"tokens", said}});
}

void run_bench(const BenchFlags& flags, Command& command) {
  const Workload w = resized(flags);
  const auto threads = static_cast<int>(flags.threads);
  set_threads(flags.threads);
  if (flags.decode) return run_decoding(w, flags, command);
  command.start();
  const std::unique_ptr<Steps> steps = prepare(w, threads);
  if (!flags.dump.empty()) dump(w, *steps, flags.dump);
  double peak = flags.no_peak ? NAN : fma_peak(threads);
  double first_loss = NAN, loss = NAN;
  const std::vector<double> times = measure(flags.steps.value_or(w.steps), [&] {
    loss = steps->step();
    if (std::isnan(first_loss)) first_loss = loss;
  });
  const double rss = peak_rss_mib();
  if (!flags.no_peak) peak = std::max(peak, fma_peak(threads));  // before and after: what else runs comes and goes
  const double gemm = flags.no_peak ? NAN : gemm_peak();

  const double seconds = median(times), least = *std::min_element(times.begin(), times.end());
  const double rate = w.operations() / seconds / 1e9, tokens = static_cast<double>(w.tokens()) / seconds;
  command.say(fmt::format("{}: {}, batch {} x {}, {}, {}\n", w.name, w.title, w.batch, w.length, kRealName,
                          counted(flags.threads, "thread")));
  const std::string share =
      flags.no_peak ? ""
                    : fmt::format(": {:.0f} % of the {:.0f} that multiply-adds reach here", 100 * rate / peak, peak);
  command.say(fmt::format(
      "{:.3f} ms a step (least {:.3f}, {} steps), {} tokens/s, {:.1f} GFLOP/s{}\npeak memory {:.0f} MiB, loss {:.5f}\n",
      seconds * 1e3, least * 1e3, times.size(), grouped(static_cast<std::int64_t>(tokens)), rate, share, rss, loss));
  if (flags.ops) command.say(op_table(*steps));
  command.answer({{"workload", w.name},
                  {"threads", flags.threads},
                  {"real", kRealName},
                  {"batch", w.batch},
                  {"seq", w.length},
                  {"parameters", steps->parameters()},
                  {"steps", times.size()},
                  {"ms_step", seconds * 1e3},
                  {"ms_min", least * 1e3},
                  {"tokens_per_second", tokens},
                  {"gflops", rate},
                  {"fma_peak_gflops", json_number(peak)},
                  {"fma_peak_share", json_number(rate / peak)},
                  {"gemm_gflops", json_number(gemm)},
                  {"peak_rss_mib", rss},
                  {"first_loss", json_number(first_loss)},
                  {"loss", json_number(loss)}});
}

}  // namespace

void add_bench(Options& options, Command& command) {
  auto flags = std::make_shared<BenchFlags>();
  options.add("workload", flags->workload, "W0 to W6: docs/performance.md says what they are").required().type("NAME");
  options.add("--steps", flags->steps, "how many to measure").range(1, 1'000'000);
  options.add("--seq", flags->length, "another length of the sequences").range(1, 1'000'000).type("T");
  options.add("--batch", flags->batch, "another number of sequences").range(1, 1'000'000).type("B");
  options.add("--width", flags->width, "another width, in heads as wide as before").range(1, 1'000'000);
  options.add("--vocabulary", flags->vocabulary, "another number of tokens").range(2, 10'000'000).type("V");
  options.flag("--decode", flags->decode, "measure tokens said, not training");
  options.add("--dump", flags->dump, "also write weights and batches (safetensors)").type("FILE");
  options.flag("--no-peak", flags->no_peak, "leave out the peak: slow under a simulator");
  options.flag("--ops", flags->ops, "also the time of each op, forward and backward");
  add_threads(options, flags->threads);
  options.run([flags, &command] { run_bench(*flags, command); });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
