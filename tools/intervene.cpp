#include "tools/intervene.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "autograd/error.h"
#include "tools/inspect/text.h"
#include "train/circuits.h"
#include "train/lens.h"

namespace tapehead::inline TAPEHEAD_REAL {

void add_intervention_options(Options& options, InterventionFlags& flags) {
  options.add("--ablate", flags.ablate, "take a head away: L0H1, L0H1=mean, =pattern").type("HEAD");
  options.add("--knock-out", flags.knock_out, "mask one cell: layer,head,query,key").type("L,H,Q,K");
  options.add("--patch", flags.patch, "put heads' outputs of this sequence in").type("FROM");
  options.flag("--lens", flags.lens, "what each layer would say");
  options.add("--attribute", flags.attribute, "what each part adds to a row's answer").type("ROW");
  options.flag("--circuits", flags.circuits, "what heads' matrices do to tokens");
}

namespace {

std::string name(const Session& session, std::int32_t token) { return text::token(session.vocabulary()[token], true); }

// --- taking away

// Adds what `--ablate` asks for; returns it in words.
std::string add_ablation(const std::string& asked, Session& session, const std::vector<HeadAverage>& averages,
                         Interventions& changes) {
  const std::size_t equals = asked.find('=');
  const HeadPlace head = parse_head(asked.substr(0, equals), session.model->net);
  const std::string how = equals == asked.npos ? "zero" : asked.substr(equals + 1);
  const auto average = std::ranges::find(averages, head, &HeadAverage::place);
  if (how == "zero")
    changes.zero(head);
  else if (how == "mean")
    changes.replace(head, average->output);
  else if (how == "pattern")
    changes.fix_pattern(head, average->weights);
  else
    throw ConfigError(
        error_line("inspect", "--ablate " + asked + ": unknown way '" + how + "'", {}, "write zero, mean or pattern"));
  return name_of(head, session.model->net) + " (" + how + ")";
}

std::string add_knock_out(const std::string& asked, Session& session, Interventions& changes) {
  std::vector<std::int64_t> numbers;
  for (std::size_t at = 0; at <= asked.size();) {
    const std::size_t comma = std::min(asked.find(',', at), asked.size());
    std::int64_t number = -1;
    const auto [end, error] = std::from_chars(asked.data() + at, asked.data() + comma, number);
    if (error != std::errc() || end != asked.data() + comma || number < 0) break;
    numbers.push_back(number);
    at = comma + 1;
  }
  if (numbers.size() != 4 || std::ranges::count(asked, ',') != 3)
    throw ConfigError(error_line("inspect", "--knock-out " + in_quotes(asked) + " names no cell", {},
                                 "write layer,head,query,key, each from 0"));
  const HeadPlace head = parse_head(fmt::format("L{}H{}", numbers[0], numbers[1]), session.model->net);
  changes.knock_out(head, numbers[2], numbers[3]);
  return fmt::format("{} without cell {}, {}", name_of(head, session.model->net), numbers[2], numbers[3]);
}

void take_away(const InterventionFlags& flags, Session& session, const Batch& unseen, int threads, Command& command) {
  Interventions changes(session.model->net);
  const std::vector<HeadAverage> averages = average_heads(*session.model, unseen);
  std::string what;
  const auto add = [&](const std::string& words) { what += (what.empty() ? "" : ", ") + words; };
  for (const std::string& asked : flags.ablate) add(add_ablation(asked, session, averages, changes));
  for (const std::string& asked : flags.knock_out) add(add_knock_out(asked, session, changes));
  Shards shards(*session.model, threads);
  const Evaluation before = shards.evaluate(unseen), after = shards.evaluate(unseen, &changes);
  command.start();
  const auto row = [&](const Evaluation& e, const std::string& label) {
    return fmt::format("{:>9}  {:>14}  {:>8.4f}  {}\n", percent(e.exact_match), percent(e.token_accuracy), e.loss,
                       label);
  };
  command.say(fmt::format("On {} unseen sequences\n\n{:>9}  {:>14}  {:>8}\n", grouped(unseen.sequences), "exact match",
                          "tokens right", "loss") +
              row(before, "the whole model") + row(after, "changed: " + what));
  const auto json = [](const Evaluation& e) {
    return nlohmann::ordered_json{{"exact_match", json_number(e.exact_match)},
                                  {"token_accuracy", json_number(e.token_accuracy)},
                                  {"loss", json_number(e.loss)}};
  };
  command.answer({{"changed", what}, {"before", json(before)}, {"after", json(after)}});
}

// --- patching

void patch(Session& session, const Batch& corrupt, const Batch& clean, Command& command) {
  const std::optional<Patching> patching = patch_heads(*session.model, clean, corrupt);
  if (!patching)
    throw ConfigError(
        error_line("patch", "both sequences have the same answers", {}, "give two sequences whose answers differ"));
  std::string out = fmt::format(
      "How far one head's output, taken from the clean sequence, moves the corrupt one's answer:\n"
      "(patched - corrupt) / (clean - corrupt), with m = logit(clean answer) - logit(corrupt answer)\n\n"
      "clean {:.4f}, corrupt {:.4f}\n\n",
      patching->clean, patching->corrupt);
  nlohmann::ordered_json heads = nlohmann::ordered_json::array();
  const std::vector<HeadPlace> places = heads_of(session.model->net);
  for (std::size_t h = 0; h < places.size(); ++h) {
    const std::string head = name_of(places[h], session.model->net);
    out += fmt::format("{:<14} {:>8.4f}\n", head, patching->recovered[h]);
    heads.push_back({{"head", head}, {"recovered", json_number(patching->recovered[h])}});
  }
  command.start();
  command.say(out);
  command.answer(
      {{"clean", json_number(patching->clean)}, {"corrupt", json_number(patching->corrupt)}, {"heads", heads}});
}

// --- reading

void show_lens(Session& session, const Batch& sequence, Command& command) {
  const std::vector<LensLayer> layers = logit_lens(*session.model, sequence, 0);
  std::string out = "Logit lens: the likeliest token if the model ended here, and the right token's probability\n\n";
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (Index t = 0; t < sequence.target_length; ++t) {
    const auto at = static_cast<std::size_t>(t);
    const std::int32_t target = sequence.targets[at];
    out += fmt::format("{:>4}:{:<6}", t, name(session, sequence.inputs[at]));
    nlohmann::ordered_json row = {{"row", t}, {"layers", nlohmann::ordered_json::array()}};
    for (const LensLayer& layer : layers) {
      out += target == Batch::kIgnore ? fmt::format("  {} {:<12}", layer.name, name(session, layer.likeliest[at]))
                                      : fmt::format("  {} {:<5}{:.4f} ", layer.name, name(session, layer.likeliest[at]),
                                                    layer.probability[at]);
      row["layers"].push_back({{"name", layer.name},
                               {"token", session.vocabulary()[layer.likeliest[at]]},
                               {"probability", json_number(layer.probability[at])}});
    }
    out += target == Batch::kIgnore ? "\n" : fmt::format("  answer {}\n", name(session, target));
    rows.push_back(std::move(row));
  }
  command.start();
  command.say(out);
  command.answer({{"rows", rows}});
}

void show_attribution(Session& session, const Batch& sequence, std::int64_t row, Command& command) {
  if (row < 0 || row >= sequence.target_length || sequence.targets[static_cast<std::size_t>(row)] == Batch::kIgnore)
    throw ConfigError(error_line("inspect", fmt::format("--attribute {}: this row answers nothing", row), {},
                                 "give a row that the rule answers; the large map frames them"));
  const std::int32_t token = sequence.targets[static_cast<std::size_t>(row)];
  const Attribution a = attribute_logit(*session.model, sequence, 0, row, token);
  command.start();
  const std::string other = name(session, a.other);
  std::string out = fmt::format(
      "What each part adds to the logit of '{}' at row {} (the last norm's scale held),\n"
      "and to its lead over '{}', the likeliest other\n\n{:<20} {:>9} {:>9}\n",
      name(session, token), row, other, "", "logit", "lead");
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  double sum = 0, lead = 0;
  for (const Attribution::Part& part : a.parts) {
    sum += part.value;
    lead += part.lead;
    out += fmt::format("{:<20} {:>9.4f} {:>9.4f}\n", part.name, part.value, part.lead);
    parts.push_back({{"name", part.name}, {"value", json_number(part.value)}, {"lead", json_number(part.lead)}});
  }
  command.say(out + fmt::format("{:<20} {:>9.4f} {:>9.4f}   the model has {:.4f} and {:.4f}\n", "sum", sum, lead,
                                a.logit, a.lead));
  command.answer({{"token", session.vocabulary()[token]},
                  {"logit", json_number(a.logit)},
                  {"other", session.vocabulary()[a.other]},
                  {"lead", json_number(a.lead)},
                  {"parts", parts}});
}

// The five largest cells of a matrix over the vocabulary.
std::string largest(const Session& session, const std::vector<float>& matrix, const char* arrow) {
  const auto V = static_cast<std::size_t>(session.vocabulary().size());
  std::vector<std::size_t> order(matrix.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const std::size_t count = std::min<std::size_t>(5, order.size());
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count), std::ranges::greater{},
                            [&](std::size_t i) { return matrix[i]; });
  std::string out;
  for (std::size_t i = 0; i < count; ++i)
    out += fmt::format("{}{} {} {} {:.4f}", i ? ", " : "", name(session, static_cast<std::int32_t>(order[i] / V)),
                       arrow, name(session, static_cast<std::int32_t>(order[i] % V)), matrix[order[i]]);
  return out;
}

void show_circuits(Session& session, Command& command) {
  const std::vector<Circuits> all = circuits(*session.model);
  command.start();
  std::string out =
      "Circuits over the vocabulary, without norms, positions and biases (Elhage et al. 2021)\n"
      "QK: query > key it attends to. OV: key looked at > token it raises. Copying: 1 when that is the key itself.\n\n";
  nlohmann::ordered_json heads = nlohmann::ordered_json::array();
  for (const Circuits& c : all) {
    const std::string head = name_of(c.place, session.model->net);
    out += fmt::format("{}  copying {:.3f}\n  QK  {}\n  OV  {}\n", head, c.copying, largest(session, c.qk, ">"),
                       largest(session, c.ov, ">"));
    heads.push_back({{"head", head}, {"copying", json_number(c.copying)}});
  }
  nlohmann::ordered_json pairs = nlohmann::ordered_json::array();
  for (const Composition& c : compositions(*session.model)) {
    const std::string from = name_of(c.from, session.model->net), to = name_of(c.to, session.model->net);
    out += fmt::format("{} reads {}  by q {:.3f}, by k {:.3f}, by v {:.3f}\n", to, from, c.q, c.k, c.v);
    pairs.push_back({{"from", from}, {"to", to}, {"q", c.q}, {"k", c.k}, {"v", c.v}});
  }
  command.say(out);
  command.answer({{"heads", heads}, {"compositions", pairs}});
}

}  // namespace

void run_interventions(const InterventionFlags& flags, Session& session, const Batch& sequence, const Batch& unseen,
                       int threads, Command& command) {
  if (!flags.ablate.empty() || !flags.knock_out.empty()) take_away(flags, session, unseen, threads, command);
  if (!flags.patch.empty()) patch(session, sequence, read_sequence(session, flags.patch), command);
  if (flags.lens) show_lens(session, sequence, command);
  if (flags.attribute) show_attribution(session, sequence, *flags.attribute, command);
  if (flags.circuits) show_circuits(session, command);
}

}  // namespace tapehead::inline TAPEHEAD_REAL
