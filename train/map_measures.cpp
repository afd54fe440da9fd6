#include "train/map_measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tapehead {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// A mean over the rows where something applies.
class Mean {
 public:
  void add(double x) { sum_ += x, ++count_; }
  double value() const { return count_ ? sum_ / count_ : kNone; }

 private:
  double sum_ = 0;
  int count_ = 0;
};

struct Row {
  const AttentionMap& map;
  int i;
  std::size_t cell(int j) const {
    return static_cast<std::size_t>(i) * static_cast<std::size_t>(map.columns) + static_cast<std::size_t>(j);
  }
  bool visible(int j) const { return map.visible[cell(j)] != 0; }
  double weight(int j) const { return double{map.weights[cell(j)]}; }
  const std::string& token(int j) const { return map.column_tokens[static_cast<std::size_t>(j)]; }
  const std::string& own_token() const { return map.row_tokens[static_cast<std::size_t>(i)]; }
};

// 1 - H / ln(visible keys); 0 for a uniform row, 1 for one that looks at one key; NaN with one visible key.
double row_sharpness(const Row& row) {
  double entropy = 0;
  int keys = 0;
  for (int j = 0; j < row.map.columns; ++j) {
    if (!row.visible(j)) continue;
    ++keys;
    if (const double a = row.weight(j); a != 0) entropy -= a * std::log(a);
  }
  return keys > 1 ? 1 - entropy / std::log(keys) : kNone;
}

double row_distance(const Row& row) {
  double sum = 0, moved = 0;
  for (int j = 0; j < row.map.columns; ++j) {
    sum += row.weight(j);
    moved += row.weight(j) * (row.i - j);
  }
  return moved / sum;
}

// Weight on keys before (offset 0) or one after (offset 1) an earlier copy of the row's token; NaN when there is none.
double row_repeat(const Row& row, int offset) {
  double sum = kNone;
  for (int j = 0; j < row.i && j + offset < row.map.columns; ++j)
    if (row.token(j) == row.own_token() && row.visible(j + offset))
      sum = (std::isnan(sum) ? 0 : sum) + row.weight(j + offset);
  return sum;
}

std::string upper_first(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// 0.9996 is not yet 1.00.
std::string share(double x) { return fmt::format("{:.2f}", std::floor(x * 100 + 1e-9) / 100); }

std::string percent(double x) { return x >= 1 ? "100 %" : fmt::format("{:.1f} %", std::floor(x * 1000 + 1e-9) / 10); }

}  // namespace

MapMeasures measure(const AttentionMap& map) {
  Mean sharpness, confidence, distance, previous, duplicate, induction;
  const bool self = map.kind != "cross" && map.rows == map.columns;
  const auto add = [](Mean& mean, double x) {
    if (!std::isnan(x)) mean.add(x);
  };
  for (int i = 0; i < map.rows; ++i) {
    const Row row{map, i};
    double largest = 0;
    for (int j = 0; j < map.columns; ++j) largest = std::max(largest, row.weight(j));
    confidence.add(largest);
    add(sharpness, row_sharpness(row));
    if (!self) continue;
    distance.add(row_distance(row));
    if (i > 0) previous.add(row.weight(i - 1));
    add(duplicate, row_repeat(row, 0));
    add(induction, row_repeat(row, 1));
  }
  return {pattern_match(map), sharpness.value(), confidence.value(), distance.value(),
          previous.value(),   duplicate.value(), induction.value()};
}

const std::vector<std::string>& measure_names() {
  static const std::vector<std::string> names = {"pattern_match", "sharpness", "confidence", "distance",
                                                 "previous",      "duplicate", "induction"};
  return names;
}

std::vector<double> as_list(const MapMeasures& m) {
  return {m.pattern_match, m.sharpness, m.confidence, m.distance, m.previous, m.duplicate, m.induction};
}

std::vector<float> rollout(const std::vector<AttentionMap>& maps, const std::string& kind) {
  std::vector<double> total;  // of the layers so far, [T, T]
  for (std::int32_t layer = 0;; ++layer) {
    std::vector<double> mix;
    int heads = 0;
    std::size_t T = 0;
    for (const AttentionMap& map : maps) {
      if (map.kind != kind || map.layer != layer || map.rows != map.columns) continue;
      T = static_cast<std::size_t>(map.rows);
      mix.resize(T * T);
      for (std::size_t i = 0; i < mix.size(); ++i) mix[i] += double{map.weights[i]};
      ++heads;
    }
    if (heads == 0) return {total.begin(), total.end()};
    for (std::size_t i = 0; i < mix.size(); ++i) mix[i] = mix[i] / heads / 2 + (i % (T + 1) == 0 ? 0.5 : 0);
    if (layer == 0) {
      total = mix;
      continue;
    }
    std::vector<double> product(mix.size());
    for (std::size_t i = 0; i < T; ++i)
      for (std::size_t k = 0; k < T; ++k)
        for (std::size_t j = 0; j < T; ++j) product[i * T + j] += mix[i * T + k] * total[k * T + j];
    total = std::move(product);
  }
}

std::string label_of(const std::string& measure, const std::string& rule_label) {
  if (measure == "pattern_match") return rule_label;
  if (measure == "duplicate" || measure == "previous") return measure + " token";
  return measure == "induction" ? measure : "";
}

std::vector<HeadLabel> labels(const MapMeasures& m, const std::string& rule_label) {
  std::vector<HeadLabel> found;
  const std::vector<double> values = as_list(m);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const std::string name = label_of(measure_names()[i], rule_label);
        !name.empty() && values[i] >= kLabelThreshold)
      found.push_back({name, values[i], kLabelThreshold});
  std::ranges::stable_sort(found, std::ranges::greater{}, &HeadLabel::value);
  return found;
}

std::string finding(const AttentionMap& map, const MapMeasures& m, const std::string& rule_label) {
  std::string text = fmt::format("L{}H{} ", map.layer, map.head);
  if (!std::isnan(m.pattern_match))
    text += fmt::format("puts {} of its weight where the rule looks, in the rows that count", share(m.pattern_match));
  else
    text += fmt::format("gives {} of a row's weight to its largest key on average", share(m.confidence));
  if (!std::isnan(m.sharpness))
    text += fmt::format("; its rows are {} (sharpness {})",
                        m.sharpness >= 0.8   ? "almost all on one key"
                        : m.sharpness >= 0.4 ? "concentrated"
                        : m.sharpness >= 0.1 ? "spread"
                                             : "nearly uniform",
                        share(std::max(m.sharpness, 0.0)));
  text += ".";
  std::string names;
  for (const HeadLabel& label : labels(m, rule_label))
    names += fmt::format("{}{} {}", names.empty() ? "" : ", ", label.name, share(label.value));
  if (!names.empty()) text += fmt::format(" {} (a label needs {}).", upper_first(names), kLabelThreshold);
  return text;
}

std::string ablation_finding(double with, double without) {
  if (std::isnan(with) || std::isnan(without)) return {};
  const char* how = without < with ? "falls" : without > with ? "rises" : "";
  if (*how == '\0') return fmt::format("Without it exact match stays at {}.", percent(with));
  return fmt::format("Without it exact match {} from {} to {}.", how, percent(with), percent(without));
}

}  // namespace tapehead
