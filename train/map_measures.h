// What a pattern looks like, in numbers, and in words.
//
// Rows i with one visible key say nothing and are left out of sharpness. Formulas: entropy of a row, as in Ghader and
// Monz (2017); previous-token, duplicate-token and induction heads as in Olsson et al. (2022) and Wang et al. (2022).
#pragma once

#include <string>
#include <vector>

#include "train/attention_map.h"

namespace tapehead {

/// Each a mean over rows; NaN where it does not apply.
struct MapMeasures {
  double pattern_match = 0;  // weight on the column that the task's rule names
  double sharpness = 0;      // 1 - mean_i H_i / ln(visible keys of row i), H_i = -sum_j A_ij ln A_ij
  double confidence = 0;     // max_j A_ij
  double distance = 0;       // sum_j A_ij (i - j) / sum_j A_ij: in tokens, backwards; self-attention alone
  double previous = 0;       // A_i,i-1
  double duplicate = 0;      // sum of A_ij over j < i with the same token; rows that have such a j
  double induction = 0;      // sum of A_i,j+1 over j + 1 <= i where an earlier j holds the row's token; such rows
};
MapMeasures measure(const AttentionMap& map);

/// One name for each of the seven, in their order, as they stand in metrics.jsonl.
const std::vector<std::string>& measure_names();
std::vector<double> as_list(const MapMeasures& measures);

/// Attention rollout (Abnar and Zuidema 2020, section 3) through the layers of one self-attention stack, [T, T]: the
/// product, last layer first, of (mean over heads of A + I) / 2. Rows sum to 1. Empty when `kind` has no square maps.
std::vector<float> rollout(const std::vector<AttentionMap>& maps, const std::string& kind);

/// A measure of at least this gives a head its label.
inline constexpr double kLabelThreshold = 0.5;
/// The label that a measure gives, "" for one that gives none; `rule_label` is that of pattern_match.
std::string label_of(const std::string& measure, const std::string& rule_label);

/// What the head does as far as its measures show.
struct HeadLabel {
  std::string name;  // "previous token"
  double value = 0, threshold = 0;
};
std::vector<HeadLabel> labels(const MapMeasures& measures, const std::string& rule_label);

/// "L1H0 (decoder) puts 0.97 of its weight where the rule looks." and what else stands out.
std::string finding(const AttentionMap& map, const MapMeasures& measures, const std::string& rule_label);
/// "Without it exact match falls from 99.8 % to 12.4 %."
std::string ablation_finding(double with, double without);

}  // namespace tapehead
