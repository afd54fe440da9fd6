// The table of every setting, bound to one Config: the single place that knows names, types, ranges and meanings.
#pragma once

#include <string_view>
#include <variant>

#include "train/config.h"

namespace tapehead {

/// Finite numbers from low to high, either end left out when open.
struct Interval {
  double low = 0, high = 0;
  bool open_low = false, open_high = false;
  bool contains(double value) const;  // false for NaN
  std::string text() const;           // "[0, 1)"
};

/// A value as it was written: what TOML calls boolean, integer, float and string.
using SettingValue = std::variant<bool, std::int64_t, double, std::string>;

struct ConfigKey {
  std::string name;  // "model.heads"
  std::variant<std::int64_t*, std::uint64_t*, double*, bool*, ModelKind*, PositionKind*, NormOrder*, ActivationKind*>
      target;
  Interval range;  // of numbers
  std::string unit;
  std::string help;

  bool is_choice() const { return target.index() >= 4; }
  std::string type() const;     // "a whole number", "one of pre, post"
  std::string text() const;     // the present value
  std::string problem() const;  // the present value's, a fact for an error line; empty when in range
  /// Takes the value and returns "", or leaves the target alone and returns what is wrong; `shown` is the value as
  /// written.
  std::string assign(const SettingValue& value, const std::string& shown) const;
  /// The same for --set, where text has no type of its own.
  std::string assign_text(const std::string& text) const;
};

/// In the order of the page: seed, model, train, data. Pointers lead into `config`.
std::vector<ConfigKey> config_keys(Config& config);
/// nullptr when there is none.
const ConfigKey* find_key(const std::vector<ConfigKey>& keys, std::string_view name);
/// "unknown key 'learning_rat'. Did you mean 'train.learning_rate'?"
std::string unknown_key(const std::vector<ConfigKey>& keys, const std::string& name);

/// The shortest text that reads back as the same double.
std::string number_text(double value);

}  // namespace tapehead
