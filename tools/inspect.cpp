// tapehead inspect: what a model's heads look at, drawn in the terminal.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "autograd/error.h"
#include "tools/command.h"
#include "tools/inspect/heatmap.h"
#include "tools/session.h"
#include "train/attention_history.h"
#include "train/measures.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

struct InspectFlags {
  std::string model, input, kind, show = "all";
  std::optional<std::int64_t> layer, head;
  std::int64_t sequences = 100;
};

// The user's own sequence, or the first unseen one.
Batch chosen_sequence(const Session& session, const std::string& input) {
  if (input.empty()) return session.held_out(1, session.file.config.seed);
  const Prompt prompt = read_prompt(*session.task, input);
  std::vector<Example> examples(1);
  examples[0].source = prompt.source;
  session.task->answer(examples[0]);
  if (!prompt.target.empty() && prompt.target != examples[0].target) {
    examples[0].target = prompt.target;  // the user's own target: which source it is read from is unknown
    examples[0].link.assign(prompt.target.size(), -1);
  }
  Batch batch;
  lay_out(*session.task, examples, session.layout(), batch);
  return batch;
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

// First, middle and last snapshot of a run; empty when `model` is not a run folder that has some.
std::vector<Snapshot> three_moments(const std::string& model) {
  const std::string path = model + "/snapshots.bin";
  if (!std::filesystem::exists(path)) return {};
  std::vector<Snapshot> all = AttentionHistory::load(path).all();
  if (all.size() < 3) return all;
  const auto middle = std::min_element(all.begin() + 1, all.end() - 1, [&](const Snapshot& a, const Snapshot& b) {
    const auto distance = [&](const Snapshot& s) {
      return std::abs(2 * static_cast<double>(s.step) - static_cast<double>(all.back().step));
    };
    return distance(a) < distance(b);
  });
  return {all.front(), *middle, all.back()};
}

// The command that draws the same again.
std::string command_of(const InspectFlags& flags, const Command& command) {
  std::string line = command.program + " inspect " + shell_word(flags.model);
  if (!flags.input.empty()) line += " --input " + shell_word(flags.input);
  if (!flags.kind.empty()) line += " --kind " + flags.kind;
  if (flags.layer) line += fmt::format(" --layer {}", *flags.layer);
  if (flags.show != "all") line += " --show " + flags.show;
  if (flags.head) line += fmt::format(" --head {}", *flags.head);
  return line;
}

void run_inspect(const InspectFlags& flags, Command& command) {
  Session session = Session::open(flags.model);
  const Batch sequence = chosen_sequence(session, flags.input);
  const std::vector<Snapshot> moments = flags.input.empty() ? three_moments(flags.model) : std::vector<Snapshot>{};
  const Batch batch = session.held_out(flags.sequences, session.file.config.seed);
  const std::vector<HeadMeasure> heads = measure_heads(*session.model, batch);
  const std::vector<AttentionMap> maps = attention_maps(*session.model, sequence, 0, session.vocabulary().tokens());
  const AttentionMap& large = chosen_head(maps, heads, flags);
  command.start();

  const bool one = flags.layer.has_value() || flags.head.has_value() || !flags.kind.empty();
  const auto shows = [&](const char* view) { return flags.show == view || (flags.show == "all" && !one); };
  const bool overview = shows("overview"), training = shows("training") && moments.size() > 1;
  const bool head = shows("head") || one || (!overview && !training);
  Figure figure{detect_terminal(STDOUT_FILENO), command_of(flags, command), session.describe()};
  figure.notes = !head && !training;
  if (overview) command.say(draw_overview(maps, figure) + (figure.notes ? "" : "\n"));
  figure.notes = !training;
  if (head) command.say(draw_head(large, figure) + (figure.notes ? "" : "\n"));
  figure.notes = true;
  if (training) command.say(draw_filmstrip(moments, large.kind, large.layer, large.head, figure));
  command.answer({{"task", session.task->name()},
                  {"step", session.file.step},
                  {"sequences", flags.sequences},
                  {"heads", heads_json(heads)}});
}

}  // namespace

void add_inspect(Options& options, Command& command) {
  auto flags = std::make_shared<InspectFlags>();
  options.add("model", flags->model, "a run folder or a checkpoint").required().type("RUN|CKPT");
  options.add("--input", flags->input, "your own sequence: 'source', or 'source | target'");
  options.add("--layer", flags->layer, "draw a head of this layer alone, from 0").range(0, 1'000'000);
  options.add("--head", flags->head, "draw this head alone, from 0").range(0, 1'000'000);
  options.add("--kind", flags->kind, "self-attention or cross-attention").one_of({"decoder", "encoder", "cross"});
  options.add("--show", flags->show, "one picture alone, or all").one_of({"all", "overview", "head", "training"});
  options.add("--sequences", flags->sequences, "unseen ones to measure over").range(1, 100'000);
  options.run([flags, &command] { run_inspect(*flags, command); });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
