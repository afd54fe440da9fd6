// tapehead inspect: what a model's heads look at, drawn in the terminal.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "autograd/error.h"
#include "tools/command.h"
#include "tools/examine.h"
#include "tools/inspect/exports.h"
#include "tools/inspect/heatmap.h"
#include "tools/inspect/matrices.h"
#include "tools/intervene.h"
#include "tools/session.h"
#include "train/evidence.h"
#include "train/files.h"
#include "train/map_measures.h"
#include "train/run_folder.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

struct InspectFlags {
  std::string model, data, input, kind, show = "all", tokens;
  ExportFiles files;
  InterventionFlags interventions;
  bool watch = false;
  std::int64_t report_size = 16, threads = 1;
  std::optional<std::int64_t> layer, head;
  std::int64_t sequences = 100;
};

// The user's own sequence, or the first unseen one.
Batch chosen_sequence(const Session& session, const std::string& input) {
  if (input.empty()) return session.held_out(1, session.file.config.seed);
  return read_sequence(session, input);
}

const HeadMeasure* best_of(const std::vector<HeadMeasure>& heads) {
  const HeadMeasure* best = nullptr;
  for (const HeadMeasure& head : heads)
    if (!std::isnan(head.pattern_match) && (!best || head.pattern_match > best->pattern_match)) best = &head;
  return best;
}

// The head to draw large: as asked for, else the one that matches the rule best.
const AttentionMap& chosen_head(const std::vector<AttentionMap>& maps, const std::vector<HeadMeasure>& heads,
                                const InspectFlags& flags) {
  if (!flags.layer && !flags.head && flags.kind.empty())
    if (const HeadMeasure* best = best_of(heads))
      for (const AttentionMap& map : maps)
        if (map.kind == best->kind && map.layer == best->layer && map.head == best->head) return map;
  std::string known;
  for (const AttentionMap& map : maps) {
    const bool fits = (!flags.layer || map.layer == *flags.layer) && (!flags.head || map.head == *flags.head) &&
                      (flags.kind.empty() || map.kind == flags.kind);
    if (fits) return map;
    const std::string name = fmt::format("{} --layer {} --head {}", map.kind, map.layer, map.head);
    known = known.empty() ? name : known.substr(0, known.find(" to ")) + " to " + name;
  }
  throw ConfigError(
      error_line("inspect",
                 fmt::format("there is no {}head {} in layer {}", flags.kind.empty() ? "" : flags.kind + " ",
                             flags.head.value_or(0), flags.layer.value_or(0)),
                 {}, "heads are " + known));
}

nlohmann::ordered_json heads_json(const std::vector<HeadMeasure>& heads) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const HeadMeasure& h : heads)
    list.push_back(
        {{"kind", h.kind}, {"layer", h.layer}, {"head", h.head}, {"pattern_match", json_number(h.pattern_match)}});
  return list;
}

// A run's snapshots. Damaged ones take away the past alone: the end is in the checkpoint.
AttentionHistory whole_history(const std::string& model) {
  try {
    return history_of(model);
  } catch (const FileError& e) {
    fmt::print(stderr, "{} Hint: shown is the trained model alone\n", e.what());
    return {};
  }
}

// First, middle and last snapshot; all of them when they are fewer.
std::vector<Snapshot> three_moments(const AttentionHistory& all) {
  if (all.size() < 3) return all.all();
  const auto end = static_cast<double>(all.snapshots.back().step);
  std::size_t middle = 1;
  const auto off = [&](std::size_t i) { return std::abs(2 * static_cast<double>(all.snapshots[i].step) - end); };
  for (std::size_t i = 2; i + 1 < all.size(); ++i)
    if (off(i) < off(middle)) middle = i;
  return {all.at(0), all.at(middle), all.at(all.size() - 1)};
}

// The command that draws the same again.
std::string command_of(const InspectFlags& flags, const std::string& program) {
  std::string line = program + " inspect " + shell_word(flags.model);
  if (!flags.input.empty()) line += " --input " + shell_word(flags.input);
  if (!flags.kind.empty()) line += " --kind " + flags.kind;
  if (flags.layer) line += fmt::format(" --layer {}", *flags.layer);
  if (flags.show != "all") line += " --show " + flags.show;
  if (flags.head) line += fmt::format(" --head {}", *flags.head);
  return line;
}

// The command as a page or figure may tell it, without the folders above a path from the root.
std::string told_command(InspectFlags flags) {
  flags.model = name_in_report(flags.model);
  return command_of(flags, "tapehead");
}

void write_html(const InspectFlags& flags, const Report& report, Command& command) {
  const std::string html = report_html(report, static_cast<std::size_t>(flags.report_size) * 1'000'000);
  command.start();
  write_file_atomically(flags.files.html, html);
  command.say(fmt::format("{}: a page of {:.1f} MB\n", flags.files.html, static_cast<double>(html.size()) / 1e6));
}

// q, k and v of every head, [H, T, D], beside the patterns.
std::vector<NamedArray> projection_arrays(Model& model, const Batch& sequence) {
  struct Group {
    std::string name;
    std::int64_t heads = 0, rows, width;
    std::vector<float> numbers;
  };
  std::vector<Group> groups;
  for (const HeadProjections& p : projections(model, sequence, 0)) {
    const std::string scope = tap_scope(p.place.attention.kind, p.place.attention.layer, model.net.encoder.has_value());
    if (p.place.head == 0)
      for (const auto& [name, rows, width] :
           {std::tuple("hook_q", p.T, p.D), std::tuple("hook_k", p.S, p.D), std::tuple("hook_v", p.S, p.Dv)})
        groups.push_back({scope + name, 0, rows, width, {}});
    const std::vector<float>* parts[] = {&p.q, &p.k, &p.v};
    for (std::size_t i = 0; i < 3; ++i) {
      Group& group = groups[groups.size() - 3 + i];
      ++group.heads;
      group.numbers.insert(group.numbers.end(), parts[i]->begin(), parts[i]->end());
    }
  }
  std::vector<NamedArray> arrays;
  arrays.reserve(groups.size());
  for (const Group& g : groups) arrays.push_back(array_of(g.name, {g.heads, g.rows, g.width}, g.numbers));
  return arrays;
}

void draw(const InspectFlags& flags, const std::vector<AttentionMap>& maps, const AttentionMap& large,
          const std::vector<Snapshot>& moments, const std::string& caption, const std::string& rule, Command& command) {
  const bool one = flags.layer.has_value() || flags.head.has_value() || !flags.kind.empty();
  const auto shows = [&](const char* view) { return flags.show == view || (flags.show == "all" && !one); };
  const bool overview = shows("overview"), training = shows("training") && moments.size() > 1;
  const bool head = shows("head") || one || (!overview && !training);
  Figure figure{detect_terminal(STDOUT_FILENO), command_of(flags, command.program), caption};
  figure.notes = !head && !training;
  if (overview) command.say(draw_overview(maps, figure) + (figure.notes ? "" : "\n"));
  figure.notes = !training;
  figure.finding = finding(large, measure(large), rule);
  if (head) command.say(draw_head(large, figure) + (figure.notes ? "" : "\n"));
  figure.notes = true;
  if (training) command.say(draw_filmstrip(moments, large.kind, large.layer, large.head, figure));
}

// Draws each newest snapshot of a run until nobody trains in it any more.
void watch(const InspectFlags& flags, Command& command) {
  if (!std::filesystem::is_directory(flags.model))
    throw ConfigError(error_line("inspect", flags.model + " is no run folder: there is nothing to watch"));
  history_of(flags.model);  // refused when damaged
  command.start();
  const Terminal terminal = detect_terminal(STDOUT_FILENO);
  std::uint64_t drawn = std::numeric_limits<std::uint64_t>::max();
  for (bool training = true; training;) {
    training = is_training(flags.model);  // asked first: what is saved at the end is still drawn
    const AttentionHistory history = history_of(flags.model);
    if (!history.empty() && history.snapshots.back().step != drawn) {
      const Snapshot newest = history.at(history.size() - 1);
      drawn = newest.step;
      const Figure figure{terminal, command_of(flags, command.program) + " --watch",
                          fmt::format("step {}, loss {:.4f}", newest.step, newest.loss)};
      command.say((terminal.colour != Colour::none ? "\x1b[H\x1b[2J" : "") + draw_overview(newest.maps, figure));
    }
    if (training) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

// Attention that another program computed.
void inspect_matrices(const InspectFlags& flags, Command& command) {
  flags.files.require_writable();
  if (!flags.input.empty() || flags.interventions.any())
    throw ConfigError(error_line("inspect", flags.model + " holds attention alone, no model to run", {},
                                 "leave out --input and what changes the model"));
  const std::vector<AttentionMap> maps = read_matrices(flags.model, flags.tokens);
  const std::vector<HeadMeasure> unmeasured;
  const AttentionMap& large = chosen_head(maps, unmeasured, flags);
  const std::string name = name_in_report(flags.model);
  if (!flags.files.html.empty()) {
    Report report;
    report.title = name;
    report.summary = "attention that was computed elsewhere";
    report.subtitle = counted(static_cast<std::int64_t>(maps.size()), "head");
    report.command = told_command(flags) + " --html FILE";
    report.history.add({0, NAN, NAN, maps}, SnapshotReason::grid);
    write_html(flags, report, command);
  }
  command.start();
  command.say(write_exports(flags.files, maps, large, {name, told_command(flags)}, {}));
  if (!flags.files.any()) draw(flags, maps, large, {}, name, "", command);
  command.answer({{"file", name}, {"heads", maps.size()}});
}

void run_inspect(const InspectFlags& flags, Command& command) {
  if (names_matrices(flags.model)) return inspect_matrices(flags, command);
  if (flags.watch) return watch(flags, command);
  if (!flags.tokens.empty())
    throw ConfigError(error_line("inspect", "--tokens names the positions of an .npy or .npz file", {}, "use --input"));
  flags.files.require_writable();
  Session session = Session::open(flags.model, flags.data);
  const Batch sequence = chosen_sequence(session, flags.input);
  if (flags.interventions.any()) {
    set_threads(flags.threads);
    const Batch unseen = session.held_out(flags.sequences, session.file.config.seed);
    return run_interventions(flags.interventions, session, sequence, unseen, static_cast<int>(flags.threads), command);
  }
  const bool draws_training = flags.input.empty() && !flags.files.any();
  AttentionHistory history;
  if (draws_training || !flags.files.html.empty()) history = whole_history(flags.model);
  const std::vector<Snapshot> moments = draws_training ? three_moments(history) : std::vector<Snapshot>{};
  if (!flags.files.html.empty()) {
    set_threads(flags.threads);
    ExamineOptions options{
        flags.model, told_command(flags) + " --html FILE", std::move(history), {}, static_cast<int>(flags.threads)};
    if (!flags.input.empty()) options.own = sequence;
    write_html(flags, examine(session, options), command);
  }
  const Batch batch = session.held_out(flags.sequences, session.file.config.seed);
  const std::vector<HeadMeasure> heads = measure_heads(*session.model, batch);
  const std::vector<AttentionMap> maps = attention_maps(*session.model, sequence, 0, session.vocabulary().tokens());
  const AttentionMap& large = chosen_head(maps, heads, flags);
  command.start();
  command.say(
      write_exports(flags.files, maps, large, {session.describe(), told_command(flags)},
                    flags.files.arrays() ? projection_arrays(*session.model, sequence) : std::vector<NamedArray>{}));
  if (!flags.files.any())
    draw(flags, maps, large, moments, session.describe(), rule_label(session.task->name()), command);
  command.answer({{"task", session.task->name()},
                  {"step", session.file.step},
                  {"sequences", flags.sequences},
                  {"heads", heads_json(heads)}});
}

}  // namespace

void add_inspect(Options& options, Command& command) {
  auto flags = std::make_shared<InspectFlags>();
  options.add("model", flags->model, "a run folder, a checkpoint, or .npy and .npz").required().type("RUN|CKPT");
  options.add("--data", flags->data, "the text that a model of text was trained on").type("FILE");
  options.add("--input", flags->input, "your own sequence: 'source', or 'source | target'");
  options.add("--layer", flags->layer, "draw a head of this layer alone, from 0").range(0, 1'000'000);
  options.add("--head", flags->head, "draw this head alone, from 0").range(0, 1'000'000);
  options.add("--kind", flags->kind, "self-attention or cross-attention").one_of({"decoder", "encoder", "cross"});
  options.add("--show", flags->show, "one picture alone, or all").one_of({"all", "overview", "head", "training"});
  options.add("--sequences", flags->sequences, "unseen ones to measure over").range(1, 100'000);
  options.add("--html", flags->files.html, "write a page with everything instead").type("FILE");
  options.add("--svg", flags->files.svg, "write the head as a drawing").type("FILE");
  options.add("--png", flags->files.png, "write the head as a picture").type("FILE");
  options.add("--npz", flags->files.npz, "write all weights, q, k, v for NumPy").type("FILE");
  options.add("--safetensors", flags->files.safetensors, "the same in that format").type("FILE");
  options.add("--csv", flags->files.csv, "write all weights as a table").type("FILE");
  options.flag("--watch", flags->watch, "draw again while it trains");
  options.add("--tokens", flags->tokens, "names of positions for .npy, .npz").type("FILE");
  options.add("--report-size", flags->report_size, "of the page at most, MB").range(1, 500);
  add_intervention_options(options, flags->interventions);
  add_threads(options, flags->threads);
  options.run([flags, &command] { run_inspect(*flags, command); });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
