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
  static const Names list = {"learned", "sinusoidal", "rope", "alibi", "none"};
  return list;
}
const Names& names(NormOrder) {
  static const Names list = {"pre", "post"};
  return list;
}
const Names& names(ActivationKind) {
  static const Names list = {"relu", "gelu", "silu", "swiglu"};
  return list;
}
const Names& names(NormKind) {
  static const Names list = {"layer", "rms", "none"};
  return list;
}
const Names& names(ScoringKind) {
  static const Names list = {"dot", "additive", "cosine"};
  return list;
}

const Names& names(OptimizerKind) {
  static const Names list = {"adamw"};
  return list;
}
const Names& names(ScheduleKind) {
  static const Names list = {"cosine", "constant"};
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

namespace {

// What a setting holds: T for T and for std::optional<T>.
template <class T>
struct Held {
  using Type = T;
};
template <class T>
struct Held<std::optional<T>> {
  using Type = T;
};

template <class T>
constexpr bool kIsOptional = !std::is_same_v<T, typename Held<T>::Type>;
template <class T>
constexpr bool kIsNumber = !std::is_enum_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, Names>;

// Calls f(pointer to the value), or f of a null pointer when an optional setting has none.
template <class F>
auto with_value(const ConfigKey& key, F f) {
  return std::visit(
      [&](auto* at) {
        using T = std::remove_pointer_t<decltype(at)>;
        if constexpr (kIsOptional<T>)
          return f(*at ? &**at : static_cast<typename Held<T>::Type*>(nullptr));
        else
          return f(at);
      },
      key.target);
}

std::string text_of(const Names& list) {
  std::string text;
  for (const std::string& word : list) text += (text.empty() ? "\"" : ", \"") + word + '"';
  return '[' + text + ']';
}
template <class T>
std::string text_of(T value) {
  if constexpr (std::is_enum_v<T>)
    return '"' + names(value).at(static_cast<std::size_t>(value)) + '"';
  else if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else
    return fmt::format("{}", value);
}

// Takes `value` into *at and returns "", or returns what is wrong with it.
template <class T>
std::string take(const ConfigKey& key, const SettingValue& value, const std::string& shown, T* at) {
  const std::string wrong_type = key.name + " is " + shown + ", expected " + key.type();
  const auto number = [&](double as_double, T taken) -> std::string {
    // A number that single precision would round to a forbidden bound is as wrong as the bound.
    const bool rounds_outside = std::is_same_v<T, double> && !key.range.contains(double{static_cast<float>(as_double)});
    if (!key.range.contains(as_double) || rounds_outside)
      return key.name + " is " + shown + ", outside " + key.range.text() +
             (key.range.contains(as_double) ? " once rounded to single precision" : "");
    *at = taken;
    return "";
  };
  const auto* integer = std::get_if<std::int64_t>(&value);
  if constexpr (std::is_enum_v<T>) {
    const auto* word = std::get_if<std::string>(&value);
    if (!word) return wrong_type;
    const Names& list = names(T{});
    const auto found = std::find(list.begin(), list.end(), *word);
    const std::string close = did_you_mean(*word, list.data(), list.data() + list.size());
    if (found == list.end()) return wrong_type + (close.empty() ? "" : ". Did you mean " + in_quotes(close) + "?");
    *at = static_cast<T>(found - list.begin());
    return "";
  } else if constexpr (std::is_same_v<T, bool>) {
    const bool* truth = std::get_if<bool>(&value);
    if (!truth) return wrong_type;
    *at = *truth;
    return "";
  } else if constexpr (std::is_same_v<T, Names>) {
    const auto* list = std::get_if<Names>(&value);
    if (!list) return wrong_type;
    for (const std::string& word : *list)
      if (!key.words.empty() && std::find(key.words.begin(), key.words.end(), word) == key.words.end())
        return key.name + " holds " + in_quotes(word) + ", expected " + key.type();
    *at = *list;
    return "";
  } else if constexpr (std::is_same_v<T, double>) {
    const auto* real = std::get_if<double>(&value);
    if (!real && !integer) return wrong_type;
    const double taken = real ? *real : static_cast<double>(*integer);
    return number(taken, taken + 0.0);  // -0 becomes 0: both are written alike
  } else {
    return integer ? number(static_cast<double>(*integer), static_cast<T>(*integer)) : wrong_type;
  }
}

}  // namespace

bool ConfigKey::is_number() const {
  return with_value(*this, []<class T>(T*) { return kIsNumber<T>; });
}

bool ConfigKey::is_set() const {
  return with_value(*this, [](auto* at) { return at != nullptr; });
}

std::string ConfigKey::type() const {
  return with_value(*this, [this]<class T>(T*) -> std::string {
    if constexpr (std::is_enum_v<T>) return "one of " + joined(names(T{}));
    if constexpr (std::is_same_v<T, bool>) return "true or false";
    if constexpr (std::is_same_v<T, Names>) return words.empty() ? "a list of names" : "a list of " + joined(words);
    return std::is_same_v<T, double> ? "a number" : "a whole number";
  });
}

std::string ConfigKey::text() const {
  return with_value(*this, [](auto* at) { return at ? text_of(*at) : std::string(); });
}

std::string ConfigKey::problem() const {
  const bool fits = with_value(*this, [this]<class T>(T* at) {
    if constexpr (kIsNumber<T>) return !at || range.contains(static_cast<double>(*at));
    return true;
  });
  return fits ? "" : name + " is " + text() + ", outside " + range.text();
}

std::string ConfigKey::assign(const SettingValue& value, const std::string& shown) const {
  return std::visit(
      [&](auto* at) -> std::string {
        typename Held<std::remove_pointer_t<decltype(at)>>::Type taken{};
        std::string wrong = take(*this, value, shown, &taken);
        if (wrong.empty()) *at = taken;
        return wrong;
      },
      target);
}

std::string ConfigKey::assign_text(const std::string& text) const {
  SettingValue value = text;
  if (std::holds_alternative<bool*>(target)) {
    if (text == "true" || text == "false") value = text == "true";
  } else if (std::holds_alternative<Names*>(target)) {
    Names list;  // separated by commas
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      list.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    value = list;
  } else if (is_number()) {
    if (const auto integer = parsed<std::int64_t>(text))
      value = *integer;
    else if (const auto real = parsed<double>(text))
      value = *real;
  }
  return assign(value, std::holds_alternative<std::string>(value) ? in_quotes(text) : text);
}

namespace {

void add_layer_keys(std::vector<ConfigKey>& keys, LayerOverride& o) {
  const auto add = [&, prefix = fmt::format("model.layer.{}.", o.layer)](const char* leaf, auto* at) {
    const ConfigKey* general = find_key(keys, std::string("model.") + leaf);
    keys.push_back({prefix + leaf, at, general->range, general->unit, general->help});
  };
  add("heads", &o.heads);
  add("kv_heads", &o.kv_heads);
  add("key_width", &o.key_width);
  add("value_width", &o.value_width);
  add("feed_forward", &o.feed_forward);
  add("activation", &o.activation);
  add("scoring", &o.scoring);
  add("scale", &o.scale);
  add("temperature", &o.temperature);
  add("softcap", &o.softcap);
  add("window", &o.window);
  add("rank", &o.rank);
}

}  // namespace

std::optional<std::int64_t> layer_of_key(std::string_view name) {
  constexpr std::string_view kPrefix = "model.layer.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const auto layer = parsed<std::int64_t>(name.substr(0, name.find('.')));
  return layer && *layer >= 0 ? layer : std::nullopt;
}

void add_layer(Config& config, std::int64_t layer) {
  std::vector<LayerOverride>& all = config.model.overrides;
  const auto at = std::find_if(all.begin(), all.end(), [&](const LayerOverride& o) { return o.layer >= layer; });
  if (at == all.end() || at->layer != layer) all.insert(at, LayerOverride{})->layer = layer;
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
      {"model.kv_heads", &m.kv_heads, between(0, 1024), "heads", "of keys and values, each for as many heads; 0: all"},
      {"model.key_width", &m.key_width, between(0, 16384), "channels", "of a head's queries and keys (D); 0: C / H"},
      {"model.value_width", &m.value_width, between(0, 16384), "channels", "of a head's values; 0: D"},
      {"model.feed_forward", &m.feed_forward, between(-1, 65536), "channels",
       "inside a feed-forward (F); 0: 4 C; -1: none"},
      {"model.context", &m.context, between(0, 65536), "tokens", "longest sequence; 0: what the task needs"},
      {"model.dropout", &m.dropout, fraction(), "", "share of activations dropped in training"},
      {"model.tie_embeddings", &m.tie_embeddings, {}, "", "the output head is the token table"},
      {"model.positions", &m.positions, {}, "", "what tells positions apart"},
      {"model.rope_base", &m.rope_base, above_zero(1e12), "", "RoPE: the slowest pair turns by about 1 / base a token"},
      {"model.rope_fraction", &m.rope_fraction, {0, 1, true, false}, "", "RoPE: share of a head's channels that turn"},
      {"model.norm", &m.norm, {}, "", "normalisation of every sublayer"},
      {"model.norm_order", &m.norm_order, {}, "", "norm before each sublayer, or after its residual sum"},
      {"model.activation", &m.activation, {}, "", "of the feed-forward"},
      {"model.scoring", &m.scoring, {}, "", "what compares a query with a key"},
      {"model.scale", &m.scale, between(0, 1e6), "",
       "multiplies attention scores; 0: 1 / sqrt(key_width), of additive and cosine ones 1"},
      {"model.temperature", &m.temperature, between(1e-6, 1e6), "", "divides attention scores"},
      {"model.softcap", &m.softcap, between(0, 1e6), "", "scores stay within -softcap to softcap; 0: no cap"},
      {"model.window", &m.window, between(0, 65536), "tokens", "how far self-attention reaches; 0: everywhere"},
      {"model.share",
       &m.share,
       {},
       "",
       "learned matrices that are one, with their biases: see docs/attention.md",
       Names(std::begin(kShares), std::end(kShares))},
      {"model.rank", &m.rank, between(0, 16384), "", "of W_Q, W_K, W_V and W_O; 0: full"},
      {"model.bias", &m.bias, {}, "", "biases in linear layers and norms"},
      {"model.init_std", &m.init_std, above_zero(10), "", "standard deviation of initial weights"},
      {"train.steps", &t.steps, between(1, 1e9), "steps", "at most"},
      {"train.batch", &t.batch, between(1, 65536), "sequences", "of one step"},
      {"train.optimizer", &t.optimizer, {}, "", "what takes a step along the gradient"},
      {"train.schedule", &t.schedule, {}, "", "of the learning rate, after the warmup"},
      {"train.learning_rate", &t.learning_rate, above_zero(1000), "", "at the end of the warmup"},
      {"train.min_learning_rate", &t.min_learning_rate, between(0, 1000), "", "the cosine falls towards it"},
      {"train.beta1", &t.beta1, fraction(), "", "AdamW: decay of the mean of gradients"},
      {"train.beta2", &t.beta2, fraction(), "", "AdamW: decay of the mean of their squares"},
      {"train.eps", &t.eps, above_zero(1), "", "AdamW: added to the root of that mean"},
      {"train.weight_decay", &t.weight_decay, between(0, 1000), "", "AdamW: of matrices, times the learning rate"},
      {"train.warmup", &t.warmup, between(0, 1e9), "steps", "of linear rise, before the cosine"},
      {"train.clip", &t.clip, between(0, 1e9), "", "largest norm of all gradients together; 0: off"},
      {"train.label_smoothing", &t.label_smoothing, fraction(), "", "share of a target spread over all tokens"},
      {"train.freeze",
       &t.freeze,
       {},
       "",
       "parameters that stay: names as `tapehead info` lists them, or their beginnings"},
      {"train.snapshots", &t.snapshots, between(0, 10'000), "moments", "at which attention is kept, at most"},
      {"train.eval_every", &t.eval_every, between(1, 1e9), "steps", "between evaluations on held-out sequences"},
      {"train.target", &t.target, between(0, 2), "", "exact match that ends training; above 1: never"},
  };
  for (LayerOverride& o : m.overrides) add_layer_keys(keys, o);
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
  // Tables and leaves apart, or a long table would excuse a leaf that is like nothing: 'model.foo', 'model.norm'.
  const std::size_t table = name.rfind('.') + 1;
  const std::string leaf = name.substr(table);
  const auto closest = [&](bool same_table) {
    Names full, leaves;
    for (const ConfigKey& key : keys) {
      if (same_table && (key.name.rfind('.') + 1 != table || !key.name.starts_with(name.substr(0, table)))) continue;
      full.push_back(key.name);
      leaves.push_back(key.name.substr(key.name.rfind('.') + 1));
    }
    const std::string best = did_you_mean(leaf, leaves.data(), leaves.data() + leaves.size());
    return best.empty()
               ? best
               : full[static_cast<std::size_t>(std::find(leaves.begin(), leaves.end(), best) - leaves.begin())];
  };
  std::string close = closest(true);
  if (close.empty()) close = closest(false);
  return "unknown key " + in_quotes(name) + (close.empty() ? "" : ". Did you mean " + in_quotes(close) + "?");
}

const std::string& name_of(ModelKind kind) { return names(kind).at(static_cast<std::size_t>(kind)); }

}  // namespace tapehead
