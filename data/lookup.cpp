// Lookup: key-value pairs with distinct keys, a separator, then some of the keys, each answered by its value.
// `c7 a3 d0 | d 0 c 7`
//
// A pair is one token, so that a single head can find it by its key and read its value: what attention itself does
// (Bahdanau, Cho and Bengio, "Neural machine translation by jointly learning to align and translate", 2015). Only the
// values count in the loss; ideal attention runs from the row that reads a key to that key's pair.
#include <algorithm>

#include "autograd/error.h"
#include "data/builtin.h"

namespace tapehead {

namespace {

constexpr std::int32_t kMostKeys = 26;

// Ids: the pair of key k and value v is k * values + v; then the keys, the values and the separator.
class Lookup final : public Task {
 public:
  explicit Lookup(std::vector<TaskKnob> knobs)
      : knobs_(std::move(knobs)),
        pairs_(static_cast<std::int32_t>(knobs_[0].value)),
        keys_(static_cast<std::int32_t>(knobs_[1].value)),
        values_(static_cast<std::int32_t>(knobs_[2].value)),
        queries_(static_cast<std::int32_t>(knobs_[3].value)) {
    require_fit();
    const std::vector<std::string> keys = symbol_names(keys_);
    std::vector<std::string> tokens;
    for (const std::string& key : keys)
      for (std::int32_t v = 0; v < values_; ++v) tokens.push_back(key + std::to_string(v));
    tokens.insert(tokens.end(), keys.begin(), keys.end());
    for (std::int32_t v = 0; v < values_; ++v) tokens.push_back(std::to_string(v));
    tokens.emplace_back("|");
    vocabulary_ = Vocabulary(std::move(tokens));
  }

  std::string name() const override { return "lookup"; }
  std::string summary() const override { return "answer keys with the values they were paired with"; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::int32_t separator() const override { return vocabulary_.size() - 1; }
  std::vector<TaskKnob> knobs() const override { return knobs_; }
  std::int64_t source_length() const override { return pairs_; }
  std::int64_t target_length() const override { return std::int64_t{2} * queries_; }
  bool aligned() const override { return false; }  // the source does not say which keys will be asked

  void draw(rng::Generator& random, Example& example) const override {
    std::array<std::int32_t, kMostKeys> scratch, drawn;
    const auto keys = std::span(drawn).first(static_cast<std::size_t>(pairs_));
    draw_distinct(random, keys_, scratch, keys);
    example.source.resize(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::uint32_t value = random.below(static_cast<std::uint32_t>(values_));
      example.source[i] = keys[i] * values_ + static_cast<std::int32_t>(value);
    }
    const auto asked = std::span(drawn).first(static_cast<std::size_t>(queries_));
    draw_distinct(random, pairs_, scratch, asked);
    ask(asked, example);
  }

  /// Asks for the first keys of the source, in its order.
  void answer(Example& example) const override {
    require_pairs(example.source);
    std::array<std::int32_t, kMostKeys> positions;
    for (std::int32_t i = 0; i < kMostKeys; ++i) positions[static_cast<std::size_t>(i)] = i;
    ask(std::span(positions).first(static_cast<std::size_t>(queries_)), example);
  }

 private:
  void ask(std::span<const std::int32_t> positions, Example& example) const {
    example.target.resize(2 * positions.size());
    example.link.resize(2 * positions.size());
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const std::int32_t pair = example.source[static_cast<std::size_t>(positions[i])];
      example.target[2 * i] = keys_ * values_ + pair / values_;
      example.target[2 * i + 1] = keys_ * values_ + keys_ + pair % values_;
      example.link[2 * i] = -1;
      example.link[2 * i + 1] = positions[i];
    }
  }

  void require_fit() const {
    std::string problems;
    const auto at_most = [&](const char* less, std::int32_t a, const char* more, std::int32_t b) {
      if (a <= b) return;
      const std::string fact =
          std::string(less) + " is " + std::to_string(a) + ", more than " + more + ", which is " + std::to_string(b);
      problems += (problems.empty() ? "" : "\n") + error_line("lookup", fact, "", "keys of a source differ");
    };
    at_most("data.pairs", pairs_, "data.keys", keys_);
    at_most("data.queries", queries_, "data.pairs", pairs_);
    if (!problems.empty()) throw ConfigError(problems);
  }

  void require_pairs(const std::vector<std::int32_t>& source) const {
    if (source.size() != static_cast<std::size_t>(pairs_))
      throw ConfigError(error_line(
          "lookup", "the source has " + std::to_string(source.size()) + " pairs, expected " + std::to_string(pairs_)));
    std::array<bool, kMostKeys> seen{};
    for (const std::int32_t id : source) {
      if (id < 0 || id >= keys_ * values_)
        throw ConfigError(error_line("lookup", "a source consists of pairs alone, not " + in_quotes(vocabulary_[id]),
                                     "", "write a key and its value as one token: " + vocabulary_[0]));
      bool& key = seen[static_cast<std::size_t>(id / values_)];
      if (key) throw ConfigError(error_line("lookup", "the key of " + in_quotes(vocabulary_[id]) + " is given twice"));
      key = true;
    }
  }

  std::vector<TaskKnob> knobs_;
  std::int32_t pairs_, keys_, values_, queries_;
  Vocabulary vocabulary_;
};

}  // namespace

std::unique_ptr<Task> make_lookup(const std::vector<TaskKnob>& settings) {
  return std::make_unique<Lookup>(with_settings("lookup",
                                                {{"pairs", 8, 1, kMostKeys, "pairs of a source, with distinct keys"},
                                                 {"keys", 16, 1, kMostKeys, "different keys, a to z"},
                                                 {"values", 10, 1, 100, "different values, 0 and on"},
                                                 {"queries", 4, 1, kMostKeys, "distinct keys asked for"}},
                                                settings));
}

}  // namespace tapehead
