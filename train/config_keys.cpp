#include "train/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "autograd/error.h"

namespace tapehead {

namespace {

using Names = std::vector<std::string>;

// In the order of the enumerators.
const Names& names(ModelKind) {
  static const Names list = {"decoder", "encoder", "encoder-decoder"};
  return list;
}
const Names& names(PositionKind) {
  static const Names list = {"learned", "sinusoidal", "none"};
  return list;
}
const Names& names(NormOrder) {
  static const Names list = {"pre", "post"};
  return list;
}
const Names& names(ActivationKind) {
  static const Names list = {"relu", "gelu", "silu"};
  return list;
}

std::string joined(const Names& list) {
  std::string text;
  for (const std::string& name : list) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// The whole of `text` as a number. from_chars knows no locale, no leading space and no hexadecimal.
template <class T>
std::optional<T> parsed(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

constexpr Interval between(double low, double high) { return {low, high, false, false}; }
constexpr Interval fraction() { return {0, 1, false, true}; }
constexpr Interval above_zero(double high) { return {0, high, true, false}; }

}  // namespace

std::string number_text(double value) { return fmt::format("{}", value); }

bool Interval::contains(double value) const {
  return (open_low ? value > low : value >= low) && (open_high ? value < high : value <= high);
}

std::string Interval::text() const {
  return fmt::format("{}{}, {}{}", open_low ? '(' : '[', low, high, open_high ? ')' : ']');
}

std::string ConfigKey::type() const {
  return std::visit(
      [](auto* at) -> std::string {
        using T = std::remove_pointer_t<decltype(at)>;
        if constexpr (std::is_enum_v<T>) return "one of " + joined(names(*at));
        if constexpr (std::is_same_v<T, bool>) return "true or false";
        return std::is_same_v<T, double> ? "a number" : "a whole number";
      },
      target);
}

std::string ConfigKey::text() const {
  return std::visit(
      [](auto* at) -> std::string {
        using T = std::remove_pointer_t<decltype(at)>;
        if constexpr (std::is_enum_v<T>)
          return names(*at).at(static_cast<std::size_t>(*at));
        else if constexpr (std::is_same_v<T, bool>)
          return *at ? "true" : "false";
        else
          return fmt::format("{}", *at);
      },
      target);
}

std::string ConfigKey::problem() const {
  const bool fits = std::visit(
      [this](auto* at) {
        using T = std::remove_pointer_t<decltype(at)>;
        return std::is_enum_v<T> || std::is_same_v<T, bool> || range.contains(static_cast<double>(*at));
      },
      target);
  return fits ? "" : name + " is " + text() + ", outside " + range.text();
}

std::string ConfigKey::assign(const SettingValue& value, const std::string& shown) const {
  std::string wrong_type = name + " is " + shown + ", expected " + type();
  const auto number = [&](double as_double, auto* at, auto taken) -> std::string {
    if (!range.contains(as_double)) return name + " is " + shown + ", outside " + range.text();
    *at = taken;
    return "";
  };
  return std::visit(
      [&](auto* at) -> std::string {
        using T = std::remove_pointer_t<decltype(at)>;
        const auto* integer = std::get_if<std::int64_t>(&value);
        if constexpr (std::is_enum_v<T>) {
          const auto* word = std::get_if<std::string>(&value);
          if (!word) return wrong_type;
          const Names& list = names(*at);
          const auto found = std::find(list.begin(), list.end(), *word);
          const std::string close = did_you_mean(*word, list.data(), list.data() + list.size());
          if (found == list.end())
            return wrong_type + (close.empty() ? "" : ". Did you mean " + in_quotes(close) + "?");
          *at = static_cast<T>(found - list.begin());
          return "";
        } else if constexpr (std::is_same_v<T, bool>) {
          const bool* truth = std::get_if<bool>(&value);
          if (!truth) return wrong_type;
          *at = *truth;
          return "";
        } else if constexpr (std::is_same_v<T, double>) {
          const auto* real = std::get_if<double>(&value);
          if (!real && !integer) return wrong_type;
          const double taken = real ? *real : static_cast<double>(*integer);
          return number(taken, at, taken + 0.0);  // -0 becomes 0: both are written alike
        } else {
          return integer ? number(static_cast<double>(*integer), at, static_cast<T>(*integer)) : wrong_type;
        }
      },
      target);
}

std::string ConfigKey::assign_text(const std::string& text) const {
  SettingValue value = text;
  if (std::holds_alternative<bool*>(target)) {
    if (text == "true" || text == "false") value = text == "true";
  } else if (!is_choice()) {
    if (const auto integer = parsed<std::int64_t>(text))
      value = *integer;
    else if (const auto real = parsed<double>(text))
      value = *real;
  }
  return assign(value, std::holds_alternative<std::string>(value) ? in_quotes(text) : text);
}

std::vector<ConfigKey> config_keys(Config& config) {
  ModelConfig& m = config.model;
  TrainConfig& t = config.train;
  std::vector<ConfigKey> keys = {
      {"seed", &config.seed, between(0, 0x1p53 - 1), "", "of everything random: initial weights, data, dropout"},
      {"model.kind", &m.kind, {}, "", "which model: `decoder` reads source and target as one sequence"},
      {"model.layers", &m.layers, between(1, 256), "blocks", "of the encoder and of the decoder each"},
      {"model.width", &m.width, between(1, 16384), "channels", "of every position (C), a multiple of the heads"},
      {"model.heads", &m.heads, between(1, 1024), "heads", "attention heads of a layer (H)"},
      {"model.feed_forward", &m.feed_forward, between(0, 65536), "channels", "inside a feed-forward (F); 0: 4 C"},
      {"model.context", &m.context, between(0, 65536), "tokens", "longest sequence; 0: what the task needs"},
      {"model.dropout", &m.dropout, fraction(), "", "share of activations dropped in training"},
      {"model.tie_embeddings", &m.tie_embeddings, {}, "", "the output head is the token table"},
      {"model.positions", &m.positions, {}, "", "what tells positions apart"},
      {"model.norm_order", &m.norm_order, {}, "", "norm before each sublayer, or after its residual sum"},
      {"model.activation", &m.activation, {}, "", "of the feed-forward"},
      {"model.temperature", &m.temperature, above_zero(1e6), "", "divides attention scores"},
      {"model.bias", &m.bias, {}, "", "biases in linear layers and norms"},
      {"model.init_std", &m.init_std, above_zero(10), "", "standard deviation of initial weights"},
      {"train.steps", &t.steps, between(1, 1e9), "steps", "at most"},
      {"train.batch", &t.batch, between(1, 65536), "sequences", "of one step"},
      {"train.learning_rate", &t.learning_rate, above_zero(1000), "", "at the end of the warmup"},
      {"train.min_learning_rate", &t.min_learning_rate, between(0, 1000), "", "the cosine falls towards it"},
      {"train.beta1", &t.beta1, fraction(), "", "AdamW: decay of the mean of gradients"},
      {"train.beta2", &t.beta2, fraction(), "", "AdamW: decay of the mean of their squares"},
      {"train.eps", &t.eps, above_zero(1), "", "AdamW: added to the root of that mean"},
      {"train.weight_decay", &t.weight_decay, between(0, 1000), "", "AdamW: of matrices, times the learning rate"},
      {"train.warmup", &t.warmup, between(0, 1e9), "steps", "of linear rise, before the cosine"},
      {"train.clip", &t.clip, between(0, 1e9), "", "largest norm of all gradients together; 0: off"},
      {"train.label_smoothing", &t.label_smoothing, fraction(), "", "share of a target spread over all tokens"},
      {"train.eval_every", &t.eval_every, between(1, 1e9), "steps", "between evaluations on held-out sequences"},
      {"train.target", &t.target, between(0, 2), "", "exact match that ends training; above 1: never"},
  };
  for (TaskKnob& knob : config.data)
    keys.push_back({"data." + knob.name, &knob.value,
                    between(static_cast<double>(knob.minimum), static_cast<double>(knob.maximum)), "", knob.help});
  return keys;
}

const ConfigKey* find_key(const std::vector<ConfigKey>& keys, std::string_view name) {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const ConfigKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

std::string unknown_key(const std::vector<ConfigKey>& keys, const std::string& name) {
  Names full, leaves;
  for (const ConfigKey& key : keys) {
    full.push_back(key.name);
    leaves.push_back(key.name.substr(key.name.find('.') + 1));
  }
  std::string close = did_you_mean(name, full.data(), full.data() + full.size());
  const std::string leaf = did_you_mean(name, leaves.data(), leaves.data() + leaves.size());
  if (close.empty() && !leaf.empty())
    close = full[static_cast<std::size_t>(std::find(leaves.begin(), leaves.end(), leaf) - leaves.begin())];
  return "unknown key " + in_quotes(name) + (close.empty() ? "" : ". Did you mean " + in_quotes(close) + "?");
}

const std::string& name_of(ModelKind kind) { return names(kind).at(static_cast<std::size_t>(kind)); }

}  // namespace tapehead
