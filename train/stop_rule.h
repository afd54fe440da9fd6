// When to end a run early: `pattern_match>0.95`, asked after every evaluation.
#pragma once

#include <string>

namespace tapehead {

/// A measure of any head (measure_names()), or loss, exact_match or token_accuracy on held-out sequences.
struct StopRule {
  std::string measure;
  bool above = true;  // the limit must be exceeded, else undercut
  double limit = 0;

  /// Reads "NAME>NUMBER" or "NAME<NUMBER". Throws ConfigError, with a suggestion for a name that is close.
  static StopRule parse(const std::string& text);
  bool is_of_heads() const;
  /// False for what is not a number.
  bool holds(double value) const { return above ? value > limit : value < limit; }
  std::string text() const;
};

}  // namespace tapehead
