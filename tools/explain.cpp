// tapehead explain: scaled dot-product attention (Vaswani et al. 2017, eq. 1) done by hand, beside the engine.
#include "tools/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>

#include "autograd/attention.h"
#include "autograd/error.h"
#include "tools/command.h"
#include "tools/inspect/text.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

[[noreturn]] void refuse(const std::string& fact, const std::string& hint) {
  throw ConfigError(error_line("explain", fact, {}, hint));
}

// --- reading

std::string_view trimmed(std::string_view s) {
  const std::size_t first = s.find_first_not_of(" \t\n");
  if (first == s.npos) return {};
  return s.substr(first, s.find_last_not_of(" \t\n") - first + 1);
}

std::vector<std::string_view> split(std::string_view s, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t next; (next = s.find(at)) != s.npos; s.remove_prefix(next + 1)) parts.push_back(s.substr(0, next));
  parts.push_back(s);
  return parts;
}

Real read_number(const std::string& option, std::string_view word) {
  const std::string_view digits = trimmed(word).substr(trimmed(word).starts_with("+") ? 1 : 0);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const std::string shown = text::cut(text::line(word, false), 40, false);
  const bool whole = error != std::errc::invalid_argument && end == digits.data() + digits.size();
  if (!whole || std::isinf(value) || std::isnan(value))
    refuse(fmt::format("{}: '{}' is not a finite number", option, shown), "write numbers like 1, -0.5 or 2e-3");
  const auto taken = static_cast<Real>(value);
  if (error != std::errc() || !std::isfinite(taken) || (taken == 0 && value != 0))
    refuse(fmt::format("{}: '{}' is beyond what a {}-precision number holds", option, shown,
                       sizeof(Real) == 4 ? "single" : "double"),
           "write a number nearer to 1");
  return taken;
}

Rows read_rows(const std::string& option, const std::string& typed) {
  constexpr std::size_t kMost = 64;  // what a person would read
  Rows rows;
  for (const std::string_view row : split(typed, ';')) {
    rows.emplace_back();
    for (const std::string_view word : split(row, ',')) rows.back().push_back(read_number(option, word));
    if (rows.back().size() != rows[0].size())
      refuse(fmt::format("{}: row {} has {} numbers, row 0 has {}", option, rows.size() - 1, rows.back().size(),
                         rows[0].size()),
             "separate numbers by ',' and rows by ';', as in '1,0;0,1'");
    if (rows.size() > kMost || rows[0].size() > kMost)
      refuse(fmt::format("{}: more than {} rows or numbers in a row", option, kMost), "explain a smaller example");
  }
  return rows;
}

Real read_temperature(const std::string& typed) {
  const Real value = read_number("--temperature", typed);
  if (!(value > 0))
    refuse(fmt::format("--temperature is {:g}", value),
           "give a number above 0; a small one sharpens, a large one flattens");
  return value;
}

// [T, S]: what the mask and causality leave visible.
std::vector<std::vector<bool>> read_visible(const ExplainOptions& options, std::size_t T, std::size_t S) {
  std::vector<std::vector<bool>> visible(T, std::vector<bool>(S, true));
  if (options.causal && T > S)
    refuse(fmt::format("--causal with {} queries and {} sources: the first queries would see none", T, S),
           "give at least as many keys as queries");
  const Rows allow = options.allow.empty() ? Rows(1, std::vector<Real>(S, 1)) : read_rows("--allow", options.allow);
  if ((allow.size() != 1 && allow.size() != T) || allow[0].size() != S)
    refuse(fmt::format("--allow is {} x {}, the weights are {} x {}", allow.size(), allow[0].size(), T, S),
           "give a row for each query, or one row for all, with one number for each source");
  for (std::size_t t = 0; t < T; ++t) {
    for (std::size_t s = 0; s < S; ++s) {
      const Real flag = allow[allow.size() == 1 ? 0 : t][s];
      if (flag != 0 && flag != 1) refuse(fmt::format("--allow: {:g} is neither 0 nor 1", flag), "1 means visible");
      visible[t][s] = flag == 1 && (!options.causal || s <= t + S - T);
    }
    if (std::find(visible[t].begin(), visible[t].end(), true) == visible[t].end())
      refuse(fmt::format("query {} may see no source", t), "let every query see at least one key");
  }
  return visible;
}

// --- working it out

ExplainedQuery work_out(const Explanation& e, std::size_t t, const std::vector<bool>& visible) {
  const std::size_t S = e.k.size(), d = e.q[0].size();
  ExplainedQuery x{.visible = visible,
                   .dots = std::vector<Real>(S),
                   .scores = std::vector<Real>(S),
                   .largest = -std::numeric_limits<Real>::infinity(),
                   .shifted = std::vector<Real>(S),
                   .exps = std::vector<Real>(S),
                   .weights = std::vector<Real>(S),
                   .output = std::vector<Real>(e.v[0].size())};
  for (std::size_t s = 0; s < S; ++s) {
    for (std::size_t i = 0; i < d; ++i) x.dots[s] += e.q[t][i] * e.k[s][i];
    x.scores[s] = x.dots[s] / std::sqrt(static_cast<Real>(d)) / e.temperature;
    if (!std::isfinite(x.scores[s]))
      refuse(fmt::format("the score of query {} and key {} is too large for a number", t, s), "use smaller numbers");
    if (visible[s]) x.largest = std::max(x.largest, x.scores[s]);
  }
  for (std::size_t s = 0; s < S; ++s) {
    if (!visible[s]) continue;
    x.shifted[s] = x.scores[s] - x.largest;
    x.exps[s] = std::exp(x.shifted[s]);
    x.sum += x.exps[s];
  }
  for (std::size_t s = 0; s < S; ++s) {
    x.weights[s] = x.exps[s] / x.sum;
    for (std::size_t i = 0; i < x.output.size(); ++i) x.output[i] += x.weights[s] * e.v[s][i];
  }
  return x;
}

Tensor input(Tape& tape, const Rows& rows) {
  std::vector<Real> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return tape.input({static_cast<Index>(rows.size()), static_cast<Index>(rows[0].size())}, flat);
}

// The same by the engine: the lesson must show what the models of this program do.
void compare_with_engine(const Explanation& e) {
  Tape tape;
  const auto T = static_cast<Index>(e.q.size()), S = static_cast<Index>(e.k.size());
  const auto flags = std::make_unique<bool[]>(static_cast<std::size_t>(T * S));
  Real largest = 1;
  for (std::size_t t = 0, i = 0; t < e.queries.size(); ++t)
    for (std::size_t s = 0; s < e.k.size(); ++s, ++i) {
      flags[i] = e.queries[t].visible[s];
      largest = std::max(largest, std::abs(e.queries[t].scores[s]));
    }
  Attention options;
  options.mask = Mask::allow(tape.bools({T, S}, {flags.get(), static_cast<std::size_t>(T * S)}));
  options.temperature = e.temperature;
  options.keep_weights = true;
  const std::vector<Real> output = attention(input(tape, e.q), input(tape, e.k), input(tape, e.v), options).values();
  const std::vector<Real> weights = tape.find("attention.weights").at(0).values();

  // A weight's error follows its score's: exp(x + dx) = exp(x) (1 + dx).
  const Real tolerance = 100 * largest * std::numeric_limits<Real>::epsilon();
  const auto differ = [&](Real a, Real b) { return !(std::abs(a - b) <= tolerance * std::max(Real{1}, std::abs(b))); };
  for (std::size_t t = 0, w = 0, y = 0; t < e.queries.size(); ++t) {
    Real scale = 1;  // of the values that cancel in an output
    for (const auto& row : e.v)
      for (const Real x : row) scale = std::max(scale, std::abs(x));
    bool wrong = false;
    for (const Real x : e.queries[t].weights) wrong |= differ(x, weights[w++]);
    for (const Real x : e.queries[t].output) wrong |= differ(x / scale, output[y++] / scale);
    if (wrong) throw Error(error_line("explain", fmt::format("query {}: the steps and attention() disagree", t)));
  }
}

}  // namespace

Explanation explain(const ExplainOptions& options) {
  Explanation e{.q = read_rows("--q", options.q),
                .k = read_rows("--k", options.k),
                .v = read_rows("--v", options.v),
                .temperature = read_temperature(options.temperature),
                .causal = options.causal,
                .queries = {}};
  if (e.q[0].size() != e.k[0].size())
    refuse(fmt::format("a query has {} numbers, a key has {}", e.q[0].size(), e.k[0].size()),
           "a dot product needs as many in --q as in --k");
  if (e.k.size() != e.v.size())
    refuse(fmt::format("--k has {} rows, --v has {}", e.k.size(), e.v.size()), "give one value for each key");
  const auto visible = read_visible(options, e.q.size(), e.k.size());
  for (std::size_t t = 0; t < e.q.size(); ++t) e.queries.push_back(work_out(e, t, visible[t]));
  compare_with_engine(e);
  return e;
}

// --- showing

namespace {

std::string fixed(Real x) {
  if (std::abs(x) < Real(0.00005)) x = 0;  // no "-0.0000"
  return std::abs(x) < Real(1e6) ? fmt::format("{:.4f}", x) : fmt::format("{:.4e}", x);
}
std::string typed(Real x) { return fmt::format("{:.6g}", x); }

std::string vector_text(const std::vector<Real>& x, std::string (*number)(Real)) {
  constexpr std::size_t kMost = 6;
  std::string out;
  for (std::size_t i = 0; i < std::min(x.size(), kMost); ++i) out += (i ? ", " : "") + number(x[i]);
  if (x.size() > kMost) out += fmt::format(", ... {} more", x.size() - kMost);
  return "[" + out + "]";
}

int widest(const Rows& rows, std::string (*number)(Real)) {
  std::size_t cells = 0;
  for (const auto& row : rows) cells = std::max(cells, vector_text(row, number).size());
  return static_cast<int>(cells);
}

std::string given_text(const Explanation& e) {
  const int key = std::max(widest(e.k, typed), 3);
  std::string out = fmt::format("  source   {:<{}}   value\n", "key", key);
  for (std::size_t s = 0; s < e.k.size(); ++s)
    out += fmt::format("  {:>6}   {:<{}}   {}\n", s, vector_text(e.k[s], typed), key, vector_text(e.v[s], typed));
  return out;
}

std::string dots_text(const Explanation& e, std::size_t t) {
  std::string out = "  1. Dot products, q . k: how well does each key match the query?\n";
  for (std::size_t s = 0; s < e.k.size(); ++s) {
    out += fmt::format("  {:>6}   {} . {:<{}} = ", s, vector_text(e.q[t], typed), vector_text(e.k[s], typed),
                       widest(e.k, typed));
    if (e.q[t].size() <= 3) {
      for (std::size_t i = 0; i < e.q[t].size(); ++i)
        out += fmt::format("{}{} x {}", i ? " + " : "", typed(e.q[t][i]), typed(e.k[s][i]));
      out += " = ";
    }
    out += fixed(e.queries[t].dots[s]) + "\n";
  }
  return out;
}

std::string mask_text(const Explanation& e, std::size_t t) {
  const ExplainedQuery& x = e.queries[t];
  std::string masked;
  for (std::size_t s = 0; s < x.visible.size(); ++s)
    if (!x.visible[s]) masked += fmt::format("{}{}", masked.empty() ? "" : ", ", s);
  const std::size_t last = t + e.k.size() - e.q.size();
  const std::string causal = e.causal
                                 ? fmt::format("causal: query {} sees sources 0 to {}{}", t, last,
                                               e.q.size() == e.k.size() ? "" : " (the last query sees the last source)")
                                 : "";
  if (masked.empty()) return e.causal ? causal : "every source is visible";
  return fmt::format("{}{}masked: {}; a masked source gets no exp and weight exactly 0", causal, e.causal ? "; " : "",
                     masked);
}

// What each column of the table below does.
std::string columns_text(const Explanation& e, std::size_t t) {
  const ExplainedQuery& x = e.queries[t];
  const std::size_t d = e.q[0].size();
  std::string out = "\n  2. From dot products to weights\n";
  const auto describe = [&](const std::string& column, const std::string& text) {
    const std::vector<std::string> lines = text::wrap(text, 64);
    for (std::size_t i = 0; i < lines.size(); ++i) out += fmt::format("     {:<9} {}\n", i ? "" : column, lines[i]);
  };
  if (t > 0) {  // explained above
    describe("mask", mask_text(e, t));
    return out;
  }
  describe("score", fmt::format("divide by sqrt(d) = sqrt({}) = {}: a sum of d products grows with d, this keeps its "
                                "spread the same",
                                d, fixed(std::sqrt(static_cast<Real>(d)))) +
                        (e.temperature == 1 ? ""
                                            : fmt::format(", and by the temperature {}: below 1 sharpens, above 1 "
                                                          "flattens",
                                                          typed(e.temperature))));
  describe("mask", mask_text(e, t));
  describe("- max", fmt::format("subtract the largest visible score, {}: exp cannot overflow, and no weight changes",
                                fixed(x.largest)));
  describe("exp", "e to that power: always positive, so every visible source keeps a share");
  describe("weight", fmt::format("divide by the sum of the exps, {}: the weights sum to 1", fixed(x.sum)));
  return out;
}

std::string table_text(const Explanation& e, std::size_t t) {
  const ExplainedQuery& x = e.queries[t];
  std::string out =
      fmt::format("\n  source {:>11} {:>11} {:>11} {:>11} {:>11}\n", "q . k", "score", "- max", "exp", "weight");
  Real total = 0;
  for (std::size_t s = 0; s < x.dots.size(); ++s) {
    const bool seen = x.visible[s];
    out += fmt::format("  {:>6} {:>11} {:>11} {:>11} {:>11} {:>11}\n", s, fixed(x.dots[s]), fixed(x.scores[s]),
                       seen ? fixed(x.shifted[s]) : "masked", seen ? fixed(x.exps[s]) : "-",
                       seen ? fixed(x.weights[s]) : "0");
    total += x.weights[s];
  }
  return out +
         fmt::format("  {:>6} {:>11} {:>11} {:>11} {:>11} {:>11}\n", "sum", "", "", "", fixed(x.sum), fixed(total));
}

std::string mixture_text(const Explanation& e, std::size_t t) {
  const ExplainedQuery& x = e.queries[t];
  const int value = widest(e.v, typed);
  std::string out = "\n  3. Output: each value times its weight, added up\n";
  for (std::size_t s = 0; s < e.v.size(); ++s) {
    std::vector<Real> share = e.v[s];
    for (Real& i : share) i *= x.weights[s];
    out += fmt::format("  {:>6}   {:>7} x {:<{}} = {}\n", s, x.visible[s] ? fixed(x.weights[s]) : "0",
                       vector_text(e.v[s], typed), value, vector_text(share, fixed));
  }
  return out + fmt::format("  {:>6}   {:<{}} = {}\n", "output", "", value + 10, vector_text(x.output, fixed));
}

constexpr const char* kClosing = R"(
The weights sum to 1, so an output lies among the values: it is a mixture, and
even the smallest visible weight is not 0. attention() of the engine gives the
same weights and outputs. A weight tells how much of a value entered the
mixture; it is no probability of a word, and does not tell why a model decides:
values, output projection, residual path and later layers matter too.

Try   tapehead explain --temperature 0.5             sharper; 2 is flatter
      tapehead explain --q '1,0;0,1;1,1' --causal    query 0 sees source 0 alone
      tapehead explain --v '9,9;0,2;2,1'             the weights stay the same
      tapehead explain --k '3,0;0,1;1,1'             every weight moves
)";

}  // namespace

std::string explanation_text(const Explanation& e) {
  std::string out = fmt::format(
      "Attention, step by step:   output = softmax(q . k / sqrt(d){}) v\n\n"
      "  {} x {} queries, {} x {} keys, {} x {} values\n\n",
      e.temperature == 1 ? "" : " / temperature", e.q.size(), e.q[0].size(), e.k.size(), e.k[0].size(), e.v.size(),
      e.v[0].size());
  out += given_text(e);
  for (std::size_t t = 0; t < e.q.size(); ++t) {
    out += fmt::format("\nQuery {}: q = {}\n\n", t, vector_text(e.q[t], typed));
    out += dots_text(e, t) + columns_text(e, t) + table_text(e, t) + mixture_text(e, t);
  }
  return out + kClosing;
}

nlohmann::ordered_json explanation_json(const Explanation& e) {
  const Real scale = 1 / std::sqrt(static_cast<Real>(e.q[0].size()));
  nlohmann::ordered_json out = {
      {"q", e.q}, {"k", e.k}, {"v", e.v}, {"scale", scale}, {"temperature", e.temperature}, {"causal", e.causal}};
  const auto list = [&](const char* name, auto member, bool masked_is_null) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const ExplainedQuery& x : e.queries) {
      nlohmann::ordered_json row = x.*member;
      for (std::size_t s = 0; masked_is_null && s < x.visible.size(); ++s)
        if (!x.visible[s]) row[s] = nullptr;
      rows.push_back(row);
    }
    out[name] = rows;
  };
  list("visible", &ExplainedQuery::visible, false);
  list("dots", &ExplainedQuery::dots, false);
  list("scores", &ExplainedQuery::scores, false);
  list("shifted", &ExplainedQuery::shifted, true);
  list("exps", &ExplainedQuery::exps, false);
  list("sum", &ExplainedQuery::sum, false);
  list("weights", &ExplainedQuery::weights, false);
  list("output", &ExplainedQuery::output, false);
  return out;
}

void add_explain(Options& options, Command& command) {
  auto flags = std::make_shared<ExplainOptions>();
  options.add("--q", flags->q, "queries: numbers separated by ',', rows by ';'");
  options.add("--k", flags->k, "keys, as wide as the queries");
  options.add("--v", flags->v, "values, one for each key, of any width");
  options.add("--temperature", flags->temperature, "divides the scores: < 1 sharpens, > 1 flattens");
  options.flag("--causal", flags->causal, "hide later sources, aligned to the end");
  options.add("--allow", flags->allow, "a row a query: 1 visible, 0 masked: '1,0,1'");
  options.run([flags, &command] {
    const Explanation e = explain(*flags);
    command.start();
    command.say(explanation_text(e));
    command.answer(explanation_json(e));
  });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
