// The table of every setting, bound to one Config: the single place that knows names, types, ranges and meanings.
#pragma once

#include <optional>
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
using SettingValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>>;

struct ConfigKey {
  std::string name;  // "model.heads"
  std::variant<std::int64_t*, std::uint64_t*, double*, bool*, std::vector<std::string>*, ModelKind*, PositionKind*,
               NormKind*, NormOrder*, ActivationKind*, ScoringKind*, OptimizerKind*, ScheduleKind*,
               std::optional<std::int64_t>*, std::optional<double>*, std::optional<ActivationKind>*,
               std::optional<ScoringKind>*>
      target;      // an optional one belongs to a layer that may differ from the others
  Interval range;  // of numbers
  std::string unit;
  std::string help;
  std::vector<std::string> words = {};  // what a list may hold; empty: anything

  bool is_number() const;
  bool is_set() const;          // false for an optional setting without a value
  std::string type() const;     // "a whole number", "one of pre, post"
  std::string text() const;     // the present value as TOML; empty when not set
  std::string problem() const;  // the present value's, a fact for an error line; empty when in range
  /// Takes the value and returns "", or leaves the target alone and returns what is wrong; `shown` is the value as
  /// written.
  std::string assign(const SettingValue& value, const std::string& shown) const;
  /// The same for --set, where text has no type of its own.
  std::string assign_text(const std::string& text) const;
};

/// In the order of the page: seed, model, train, data. Pointers lead into `config`.
std::vector<ConfigKey> config_keys(Config& config);
/// "model.layer.2.heads" -> 2, when the name is that of one layer's setting.
std::optional<std::int64_t> layer_of_key(std::string_view name);
/// Makes room for settings of one layer; keys taken before are void.
void add_layer(Config& config, std::int64_t layer);
/// nullptr when there is none.
const ConfigKey* find_key(const std::vector<ConfigKey>& keys, std::string_view name);
/// "unknown key 'learning_rat'. Did you mean 'train.learning_rate'?"
std::string unknown_key(const std::vector<ConfigKey>& keys, const std::string& name);

/// The shortest text that reads back as the same double.
std::string number_text(double value);

}  // namespace tapehead
