// tapehead compare: two runs or checkpoints, their settings, their results and their heads.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "autograd/error.h"
#include "tools/command.h"
#include "tools/inspect/heatmap.h"
#include "tools/inspect/parts.h"
#include "tools/inspect/text.h"
#include "tools/session.h"
#include "train/map_measures.h"
#include "train/measures.h"
#include "train/shards.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

struct CompareFlags {
  std::string a, b;
  std::int64_t sequences = 200, threads = 1;
};

// Lines of two configs that differ, as "key: a -> b". A table's name stands before its keys.
std::vector<std::string> setting_differences(const std::string& a, const std::string& b) {
  const auto read = [](const std::string& toml) {
    std::vector<std::pair<std::string, std::string>> settings;
    std::istringstream lines(toml);
    std::string table;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('[')) table = line.substr(1, line.find(']') - 1) + ".";
      if (const std::size_t equals = line.find(" = "); equals != line.npos && !line.starts_with('#'))
        settings.emplace_back(table + line.substr(0, equals), line.substr(equals + 3));
    }
    return settings;
  };
  std::vector<std::string> list;
  const auto first = read(a), second = read(b);
  const auto find = [](const auto& settings, const std::string& key) -> std::string {
    const auto at = std::ranges::find(settings, key, [](const auto& pair) { return pair.first; });
    return at == settings.end() ? "not set" : at->second;
  };
  for (const auto& [key, value] : first)
    if (find(second, key) != value) list.push_back(fmt::format("{}: {} -> {}", key, value, find(second, key)));
  for (const auto& [key, value] : second)
    if (find(first, key) == "not set") list.push_back(fmt::format("{}: not set -> {}", key, value));
  return list;
}

struct HeadDifference {
  AttentionMap a, b;
  double largest = 0, mean = 0;  // of |b - a| over visible cells
};

// Heads that both have; the maps are of one and the same sequence.
std::vector<HeadDifference> head_differences(const std::vector<AttentionMap>& a, const std::vector<AttentionMap>& b) {
  std::vector<HeadDifference> list;
  for (const AttentionMap& first : a)
    for (const AttentionMap& second : b) {
      if (first.kind != second.kind || first.layer != second.layer || first.head != second.head) continue;
      if (first.rows != second.rows || first.columns != second.columns) continue;
      HeadDifference d{first, second};
      int cells = 0;
      for (std::size_t i = 0; i < first.weights.size(); ++i) {
        if (!first.visible[i]) continue;
        const double x = std::abs(double{second.weights[i]} - double{first.weights[i]});
        d.largest = std::max(d.largest, x);
        d.mean += x;
        ++cells;
      }
      d.mean /= std::max(cells, 1);
      list.push_back(std::move(d));
    }
  return list;
}

// "+3 -5 .": the change of each weight in tenths, signed.
std::string picture(const HeadDifference& d) {
  std::string out = "       ";
  for (int j = 0; j < d.a.columns; ++j) out += fmt::format("{:>3}", j % 100);
  out += '\n';
  for (int i = 0; i < d.a.rows; ++i) {
    out += fmt::format("{:>3}:{:<3}", i,
                       text::cut(text::token(d.a.row_tokens[static_cast<std::size_t>(i)], true), 3, true));
    for (int j = 0; j < d.a.columns; ++j) {
      const std::size_t cell =
          static_cast<std::size_t>(i) * static_cast<std::size_t>(d.a.columns) + static_cast<std::size_t>(j);
      const int tenths = static_cast<int>(std::lround(10 * (d.b.weights[cell] - d.a.weights[cell])));
      out += !d.a.visible[cell] ? "  ." : tenths == 0 ? "  0" : fmt::format("{:>+3}", tenths);
    }
    out += '\n';
  }
  return out;
}

void run_compare(const CompareFlags& flags, Command& command) {
  Session a = Session::open(flags.a), b = Session::open(flags.b);
  set_threads(flags.threads);
  if (a.task->name() != b.task->name() || a.vocabulary().tokens() != b.vocabulary().tokens())
    throw ConfigError(error_line(
        "compare",
        flags.a + " is of " + a.task->name() + ", " + flags.b + " of " + b.task->name() + ": they share no sequence",
        {}, "compare models of the same task and settings of data"));
  constexpr std::uint64_t kSeed = 2;
  const Batch batch_a = a.held_out(flags.sequences, kSeed), batch_b = b.held_out(flags.sequences, kSeed);
  const Evaluation of_a = Shards(*a.model, static_cast<int>(flags.threads)).evaluate(batch_a);
  const Evaluation of_b = Shards(*b.model, static_cast<int>(flags.threads)).evaluate(batch_b);
  const auto differences = head_differences(attention_maps(*a.model, batch_a, 0, a.vocabulary().tokens()),
                                            attention_maps(*b.model, batch_b, 0, b.vocabulary().tokens()));
  const auto settings = setting_differences(a.file.config.to_toml(), b.file.config.to_toml());
  command.start();

  std::string out =
      fmt::format("A  {}: {}\nB  {}: {}\n\nSettings that differ\n", flags.a, a.describe(), flags.b, b.describe());
  for (const std::string& line : settings) out += "  " + text::line(line, true) + "\n";
  if (settings.empty()) out += "  none\n";
  const auto row = [](const char* what, double x, double y) {
    return fmt::format("{:<16}{:>10.4f}{:>10.4f}{:>+10.4f}\n", what, x, y, y - x);
  };
  out += fmt::format("\n{:<16}{:>10}{:>10}{:>10}   on {} unseen sequences\n", "", "A", "B", "B - A",
                     grouped(flags.sequences));
  out += row("loss", of_a.loss, of_b.loss) + row("exact match", of_a.exact_match, of_b.exact_match) +
         row("tokens right", of_a.token_accuracy, of_b.token_accuracy);
  out += "\nPattern match of heads, and |B - A| of weights on one unseen sequence\n";
  nlohmann::ordered_json heads = nlohmann::ordered_json::array();
  const HeadDifference* most = nullptr;
  for (const HeadDifference& d : differences) {
    const double x = pattern_match(d.a), y = pattern_match(d.b);
    // A head that the rule does not speak of has no match to compare.
    const std::string match = std::isnan(x) ? fmt::format("{:>10}{:>10}{:>10}", '-', '-', '-')
                                            : fmt::format("{:>10.4f}{:>10.4f}{:>+10.4f}", x, y, y - x);
    out += fmt::format("{:<8}L{}H{}     {}   mean {:.4f}, largest {:.4f}\n", d.a.kind, d.a.layer, d.a.head, match,
                       d.mean, d.largest);
    heads.push_back({{"kind", d.a.kind},
                     {"layer", d.a.layer},
                     {"head", d.a.head},
                     {"pattern_match_a", json_number(x)},
                     {"pattern_match_b", json_number(y)},
                     {"mean_difference", d.mean},
                     {"largest_difference", d.largest}});
    if (!most || d.mean > most->mean) most = &d;
  }
  if (differences.empty()) out += "no head is in both\n";
  if (most && most->a.columns <= 24)
    out += fmt::format("\nL{}H{}, B - A in tenths (rows are queries, columns keys, . masked)\n{}", most->a.layer,
                       most->a.head, picture(*most));
  for (const std::string& line : text::wrap(parts::kCaution, 80)) out += line + "\n";
  command.say(out);
  const auto json = [](const Evaluation& e) {
    return nlohmann::ordered_json{{"loss", json_number(e.loss)},
                                  {"exact_match", json_number(e.exact_match)},
                                  {"token_accuracy", json_number(e.token_accuracy)}};
  };
  command.answer({{"a", json(of_a)}, {"b", json(of_b)}, {"settings", settings}, {"heads", heads}});
}

}  // namespace

void add_compare(Options& options, Command& command) {
  auto flags = std::make_shared<CompareFlags>();
  options.add("a", flags->a, "a run folder or a checkpoint").required().type("RUN|CKPT");
  options.add("b", flags->b, "another").required().type("RUN|CKPT");
  options.add("--sequences", flags->sequences, "unseen ones to measure over").range(1, 100'000);
  add_threads(options, flags->threads);
  options.run([flags, &command] { run_compare(*flags, command); });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
