// The three-position calculation of attention, or the user's own, with every intermediate number.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autograd/real.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// As typed: rows separated by ';', numbers by ','.
struct ExplainOptions {
  std::string q = "1,0", k = "1,0;0,1;1,1", v = "1,0;0,2;2,1";
  std::string allow;  // 1: visible, 0: masked; a row for each query, or one row for all; empty: all visible
  std::string temperature = "1";
  bool causal = false;
};

using Rows = std::vector<std::vector<Real>>;

/// What happened to one query on its way to its output; [S] each but the last.
struct ExplainedQuery {
  std::vector<bool> visible;
  std::vector<Real> dots;     // q . k_j
  std::vector<Real> scores;   // q . k_j / sqrt(d) / temperature, masked or not
  Real largest = 0, sum = 0;  // of the visible scores; of their exps
  std::vector<Real> shifted, exps, weights;
  std::vector<Real> output;  // [d_v]
};

struct Explanation {
  Rows q, k, v;
  Real temperature = 1;
  bool causal = false;
  std::vector<ExplainedQuery> queries;
};

/// Works it out number by number, and once more with attention(): throws Error when the two disagree. Throws
/// ConfigError for input that is no such calculation.
Explanation explain(const ExplainOptions& options);
std::string explanation_text(const Explanation& e);
nlohmann::ordered_json explanation_json(const Explanation& e);

}  // namespace tapehead::inline TAPEHEAD_REAL
