#include "tools/examine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "train/circuits.h"
#include "train/evidence.h"
#include "train/lens.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace fs = std::filesystem;

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Outcome outcome_of(const Evaluation& e) { return {e.loss, e.exact_match}; }

// --- how much to compute: a function of sizes alone, so that the same run gives the same report

struct AblationBudget {
  std::int64_t sequences;  // 0: no ablation at all
  bool at_every_detail;
};

AblationBudget ablation_budget(const Session& session, std::size_t details, std::size_t heads) {
  constexpr double kWork = 6e9;  // products; a second or two
  constexpr std::int64_t kLeast = 32, kMost = 200;
  const auto tokens = static_cast<double>(session.model->config.context);
  const double once =
      2 * static_cast<double>(heads) * tokens * static_cast<double>(parameter_count(session.model->net));
  const auto fit = [&](double times) { return static_cast<std::int64_t>(kWork / (once * std::max(times, 1.0))); };
  if (const std::int64_t n = fit(static_cast<double>(details)); n >= kLeast) return {std::min(n, kMost), true};
  const std::int64_t n = 4 * fit(1);  // the end is worth more
  return {n >= kLeast ? std::min(n, kMost) : 0, false};
}

// --- one moment

void add_ablation(Model& model, const Batch& batch, int threads, ReportDetail& detail) {
  Shards shards(model, threads);
  detail.base = outcome_of(shards.evaluate(batch));
  for (const HeadAverage& average : average_heads(model, batch)) {
    Interventions zero(model.net), mean(model.net);
    zero.zero(average.place);
    mean.replace(average.place, average.output);
    detail.zeroed.push_back(outcome_of(shards.evaluate(batch, &zero)));
    detail.averaged.push_back(outcome_of(shards.evaluate(batch, &mean)));
  }
}

ReportDetail detail_of(Model& model, const Batch& sequence, std::size_t snapshot) {
  ReportDetail detail;
  detail.snapshot = snapshot;
  detail.base = {kNone, kNone};
  detail.projections = projections(model, sequence, 0);
  detail.evidence = evidence(model, sequence, 0);
  detail.lens = logit_lens(model, sequence, 0);
  detail.attributions = attribute_answers(model, sequence, 0);
  return detail;
}

Snapshot snapshot_of(Model& model, const Session& session, const Batch& sequence, std::uint64_t step) {
  Snapshot snapshot{step, kNone, kNone, attention_maps(model, sequence, 0, session.vocabulary().tokens())};
  return snapshot;
}

// The model as it was then.
Model model_at(const Session& session, const AttentionHistory& history, const PackedSnapshot& snapshot,
               const std::string& path) {
  CheckpointFile file = session.file;
  file.width = history.width;
  file.parameters = history.parameters_of(snapshot);
  return load_model(file, session.model->config, path);
}

// The maps of another sequence, at the moments whose parameters were kept.
AttentionHistory history_for(const Session& session, const AttentionHistory& run, const Batch& sequence,
                             const std::string& path) {
  AttentionHistory history;
  history.tensors = run.tensors;
  history.width = run.width;
  for (const PackedSnapshot& s : run.snapshots) {
    if (s.parameters.empty()) continue;
    Model model = model_at(session, run, s, path);
    Snapshot snapshot = snapshot_of(model, session, sequence, s.step);
    snapshot.loss = s.loss;
    snapshot.exact_match = s.exact_match;
    history.add(snapshot, s.reason);
    history.snapshots.back().parameters = s.parameters;
  }
  return history;
}

// What masking each cell by itself does takes a pass a cell, products in all:
double knock_out_work(const Model& model, const std::vector<AttentionMap>& heads) {
  double cells = 0, tokens = 0;
  for (const AttentionMap& head : heads) {
    cells += static_cast<double>(std::ranges::count(head.visible, std::uint8_t{1}));
    tokens = std::max<double>(tokens, std::max(head.rows, head.columns));
  }
  return 2 * cells * tokens * static_cast<double>(parameter_count(model.net));
}

double composition_work(const Model& model) {
  const auto n = static_cast<double>(heads_of(model.net).size()), C = static_cast<double>(model.config.width);
  return 5 * n * n * C * C * C;
}

double circuit_bytes(const Model& model) {
  return 4 * static_cast<double>(heads_of(model.net).size()) *
         std::pow(static_cast<double>(model.config.vocabulary), 2);
}

// At how many of the moments whose parameters were kept something is computed: as many as fit into `most`, evenly
// spread, the end always among them.
class Extent {
 public:
  Extent(double once, std::size_t moments, double most)
      : moments_(moments), count_(static_cast<std::size_t>(std::min(most / once, static_cast<double>(moments)))) {}
  bool none() const { return count_ == 0; }
  /// Of moment i from the end.
  bool at(std::size_t i) const { return count_ > 0 && (i == 0 || i * count_ / moments_ > (i - 1) * count_ / moments_); }

 private:
  std::size_t moments_, count_;
};

double patching_work(const Model& model, const Batch& sequence) {
  const auto tokens = static_cast<double>(std::max(sequence.source_length, sequence.target_length));
  return 2 * static_cast<double>(heads_of(model.net).size()) * tokens * static_cast<double>(parameter_count(model.net));
}

struct Extents {
  Extent knock_outs, compositions, circuits, patching;
  Extents(const Model& model, const std::vector<AttentionMap>& heads, const Batch& sequence, std::size_t moments)
      : knock_outs(knock_out_work(model, heads), moments, 6e9),
        compositions(composition_work(model), moments, 4e9),
        circuits(circuit_bytes(model), moments, 3e6),
        patching(patching_work(model, sequence), moments, 6e9) {}
};

void note_what_is_left_out(const Extents& extents, Report& report) {
  if (extents.knock_outs.none())
    report.notes.emplace_back("Knock-out of single cells is left out: for a model of this size it would take long.");
  if (extents.compositions.none())
    report.notes.emplace_back("Composition of heads is left out: for a model of this size it would take long.");
  if (extents.circuits.none())
    report.notes.emplace_back("Circuits are left out: so large a vocabulary would take most of the page.");
  if (extents.patching.none())
    report.notes.emplace_back("Patching is left out: for a model of this size it would take long.");
}

// An unseen sequence to patch heads into: of the same length, with other answers. Nothing when the first few are not.
std::optional<Batch> corrupt_of(const Session& session, const Batch& clean) {
  constexpr std::uint64_t kTries = 8;
  if (clean.counted == 0) return std::nullopt;
  for (std::uint64_t other = 1; other <= kTries; ++other) {
    Batch corrupt = session.held_out(1, session.file.config.seed + other);
    bool differs = false;
    if (corrupt.target_length != clean.target_length || corrupt.source_length != clean.source_length) continue;
    for (std::size_t t = 0; t < clean.targets.size(); ++t)
      differs |= clean.targets[t] != corrupt.targets[t] && clean.targets[t] != Batch::kIgnore &&
                 corrupt.targets[t] != Batch::kIgnore;
    if (differs) return corrupt;
  }
  return std::nullopt;
}

void add_patching(Model& model, const Batch& clean, const Batch& corrupt, ReportDetail& detail) {
  if (std::optional<Patching> p = patch_heads(model, clean, corrupt))
    detail.patching = {p->clean, p->corrupt, std::move(p->recovered)};
}

void add_compositions(const Model& model, ReportDetail& detail) {
  const std::vector<HeadPlace> heads = heads_of(model.net);
  const auto index = [&](const HeadPlace& place) {
    return static_cast<std::size_t>(std::ranges::find(heads, place) - heads.begin());
  };
  for (const Composition& c : compositions(model))
    detail.compositions.push_back({index(c.from), index(c.to), c.q, c.k, c.v});
}

void add_circuits(const Model& model, ReportDetail& detail) {
  for (Circuits& c : circuits(model, model.config.vocabulary))
    detail.circuits.push_back({std::move(c.qk), std::move(c.ov), c.copying});
}

WorkedExample worked_example(Session& session, const Batch& sequence) {
  Tape tape(session.model->parameters);
  NoGrad no_grad(tape);
  const Tensor logits = record_logits(tape, session.model->net, sequence, 0, 1);
  const Index vocabulary = logits.size(2);
  WorkedExample example;
  const auto name = [&](std::int64_t id) { return session.vocabulary()[static_cast<std::int32_t>(id)]; };
  for (Index i = 0; i < sequence.source_length; ++i)
    example.source.push_back(name(sequence.source[static_cast<std::size_t>(i)]));
  for (Index t = 0; t < sequence.target_length; ++t) {
    const auto at = static_cast<std::size_t>(t);
    const Real* row = logits.value() + t * vocabulary;
    const bool counts = sequence.targets[at] != Batch::kIgnore;
    example.inputs.push_back(name(sequence.inputs[at]));
    example.expected.push_back(counts ? name(sequence.targets[at]) : "");
    example.predicted.push_back(counts ? name(std::max_element(row, row + vocabulary) - row) : "");
  }
  return example;
}

void add_details(Session& session, const Batch& sequence, const ExamineOptions& options, Report& report) {
  const std::size_t heads = report.history.heads.size();
  const auto details = static_cast<std::size_t>(
      std::ranges::count_if(report.history.snapshots, [](const PackedSnapshot& s) { return !s.parameters.empty(); }));
  const AblationBudget budget = ablation_budget(session, std::max<std::size_t>(details, 1), heads);
  const Extents extents(*session.model, report.history.heads, sequence, std::max<std::size_t>(details, 1));
  note_what_is_left_out(extents, report);
  const std::optional<Batch> corrupt = corrupt_of(session, sequence);
  if (corrupt && !extents.patching.none()) report.corrupt = worked_example(session, *corrupt);
  report.ablation_sequences = budget.sequences;
  const Batch batch = session.held_out(std::max<std::int64_t>(budget.sequences, 1), session.file.config.seed);
  const auto add = [&](Model& model, std::size_t snapshot, std::size_t from_end, bool ablates) {
    report.details.push_back(detail_of(model, sequence, snapshot));
    ReportDetail& detail = report.details.back();
    if (extents.knock_outs.at(from_end)) detail.knock_outs = knock_outs(model, sequence, 0);
    if (extents.compositions.at(from_end)) add_compositions(model, detail);
    if (extents.circuits.at(from_end)) add_circuits(model, detail);
    if (corrupt && extents.patching.at(from_end)) add_patching(model, sequence, *corrupt, detail);
    if (!ablates || budget.sequences == 0) return;
    add_ablation(model, batch, options.threads, detail);
    detail.importance = head_importance(model, session.held_out(16, session.file.config.seed));
  };
  for (std::size_t i = 0; i < report.history.size(); ++i) {
    const PackedSnapshot& s = report.history.snapshots[i];
    if (s.parameters.empty()) continue;
    Model model = model_at(session, report.history, s, options.run);
    add(model, i, details - report.details.size() - 1, budget.at_every_detail || i + 1 == report.history.size());
  }
  if (details == 0) add(*session.model, report.history.size() - 1, 0, true);
  if (budget.sequences == 0)
    report.notes.emplace_back("Ablation is left out: for a model of this size it would take minutes.");
  else if (!budget.at_every_detail && details > 1)
    report.notes.emplace_back("Ablation was computed for the last snapshot alone: the model is large.");
}

// --- what stands beside the maps

void describe(Session& session, const ExamineOptions& options, Report& report) {
  const CheckpointFile& file = session.file;
  report.title = session.task->name();
  report.subtitle = session.describe();
  report.command = options.command;
  report.config = file.config.to_toml();
  report.task = session.task->name();
  report.summary = session.task->summary();
  report.rule = rule_label(session.task->name());
  for (const StoredTensor& tensor : file.parameters) report.parameters.push_back({tensor.name, tensor.shape});
  report.parameter_count = parameter_count(session.model->net);
  report.vocabulary = session.vocabulary().tokens();
  report.held_out = 1000;
  report.best_step = file.step;
  if (std::isfinite(file.exact_match)) report.learned = {file.loss, file.exact_match};
  if (fs::is_directory(options.run) && fs::exists(options.run + "/metrics.jsonl"))
    report.metrics = read_metrics(options.run + "/metrics.jsonl");
}

}  // namespace

std::string name_in_report(const std::string& path) {
  fs::path name(path);
  if (!name.is_absolute()) return path;
  if (!name.has_filename()) name = name.parent_path();  // "/runs/copy/"
  return name.filename().string();
}

std::string rule_label(const std::string& task) { return task == "copy" ? "copy source" : task + " match"; }

AttentionHistory history_of(const std::string& run) {
  const std::string path = run + "/snapshots.bin";
  return fs::exists(path) ? AttentionHistory::load(path) : AttentionHistory{};
}

Report examine(Session& session, const ExamineOptions& options) {
  Report report;
  describe(session, options, report);
  const Batch sequence = options.own ? *options.own : session.held_out(1, session.file.config.seed);
  report.example = worked_example(session, sequence);
  report.history = options.history;
  if (options.own) report.history = history_for(session, report.history, sequence, options.run);
  if (report.history.empty()) {
    Snapshot now = snapshot_of(*session.model, session, sequence, session.file.step);
    now.exact_match = session.file.exact_match;
    now.loss = session.file.loss;
    report.history.add(now, SnapshotReason::end);
  }
  add_details(session, sequence, options, report);
  return report;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
