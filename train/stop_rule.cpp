#include "train/stop_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "autograd/error.h"
#include "train/map_measures.h"

namespace tapehead {

StopRule StopRule::parse(const std::string& text) {
  const auto refuse = [&](const std::string& fact) {
    throw ConfigError(error_line("stop-when", fact, {}, "write a rule like pattern_match>0.95 or loss<0.1"));
  };
  const std::size_t sign = text.find_first_of("<>");
  if (sign == text.npos) refuse(in_quotes(text) + " compares nothing");
  StopRule rule{text.substr(0, sign), text[sign] == '>', 0};
  std::vector<std::string> names = measure_names();
  names.insert(names.end(), {"loss", "exact_match", "token_accuracy"});
  if (std::ranges::find(names, rule.measure) == names.end()) {
    const std::string close = did_you_mean(rule.measure, names.data(), names.data() + names.size());
    refuse("unknown measure " + in_quotes(rule.measure) + (close.empty() ? "" : ". Did you mean '" + close + "'?"));
  }
  const char *begin = text.data() + sign + 1, *end = text.data() + text.size();
  const auto [at, error] = std::from_chars(begin, end, rule.limit);
  if (error != std::errc() || at != end || !std::isfinite(rule.limit))
    refuse(in_quotes(text.substr(sign + 1)) + " is not a number");
  return rule;
}

bool StopRule::is_of_heads() const { return std::ranges::find(measure_names(), measure) != measure_names().end(); }

std::string StopRule::text() const { return fmt::format("{}{}{:g}", measure, above ? '>' : '<', limit); }

}  // namespace tapehead
