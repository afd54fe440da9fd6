// Copy: random symbols, a separator, the same symbols again. `c a f | c a f`
//
// Ideal attention is a diagonal: the row that predicts target m looks at source m. The first task of Graves, Wayne and
// Danihelka, "Neural Turing Machines" (2014), section 4.1.
#include "autograd/error.h"
#include "data/builtin.h"

namespace tapehead {

namespace {

class Copy final : public Task {
 public:
  explicit Copy(std::vector<TaskKnob> knobs)
      : knobs_(std::move(knobs)), length_(knobs_[0].value), symbols_(static_cast<std::int32_t>(knobs_[1].value)) {
    std::vector<std::string> tokens = symbol_names(symbols_);
    tokens.emplace_back("|");
    vocabulary_ = Vocabulary(std::move(tokens));
  }

  std::string name() const override { return "copy"; }
  std::string summary() const override { return "repeat a sequence of random symbols"; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::int32_t separator() const override { return symbols_; }
  std::vector<TaskKnob> knobs() const override { return knobs_; }
  std::int64_t source_length() const override { return length_; }
  std::int64_t target_length() const override { return length_; }
  bool aligned() const override { return true; }

  void draw(rng::Generator& random, Example& example) const override {
    example.source.resize(static_cast<std::size_t>(length_));
    for (std::int32_t& id : example.source)
      id = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(symbols_)));
    repeat(example);
  }

  void answer(Example& example) const override {
    if (static_cast<std::int64_t>(example.source.size()) != length_)
      throw ConfigError(error_line("copy", "the source has " + std::to_string(example.source.size()) +
                                               " symbols, expected " + std::to_string(length_)));
    for (const std::int32_t id : example.source)
      if (id < 0 || id >= symbols_)
        throw ConfigError(error_line("copy", "a source consists of symbols alone, not " + in_quotes(vocabulary_[id])));
    repeat(example);
  }

 private:
  static void repeat(Example& example) {
    example.target.assign(example.source.begin(), example.source.end());
    example.link.resize(example.source.size());
    for (std::size_t m = 0; m < example.link.size(); ++m) example.link[m] = static_cast<std::int32_t>(m);
  }

  std::vector<TaskKnob> knobs_;
  std::int64_t length_;
  std::int32_t symbols_;
  Vocabulary vocabulary_;
};

}  // namespace

std::unique_ptr<Task> make_copy(const std::vector<TaskKnob>& settings) {
  return std::make_unique<Copy>(with_settings("copy",
                                              {{"length", 10, 1, 256, "symbols of a source"},
                                               {"symbols", 16, 1, 1000, "different symbols, a to z, then s26 and on"}},
                                              settings));
}

}  // namespace tapehead
