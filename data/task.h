// A task: sequences with a rule to learn, and where the answer to each stands in the source (its ideal attention).
//
// An example is a source, then a target. A decoder-only model reads `source | target` as one sequence; an
// encoder-decoder encodes the source and decodes the target. Only counted target tokens enter the loss.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autograd/rng.h"

namespace tapehead {

/// Names of token ids, in order.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// Throws ConfigError for a name that is empty, holds white space or is given twice.
  explicit Vocabulary(std::vector<std::string> tokens);
  std::int32_t size() const { return static_cast<std::int32_t>(tokens_.size()); }
  const std::string& operator[](std::int32_t id) const { return tokens_.at(static_cast<std::size_t>(id)); }
  const std::vector<std::string>& tokens() const { return tokens_; }
  /// Throws ConfigError naming the token and, when there is one, a close name.
  std::int32_t id(const std::string& token) const;
  /// Ids of tokens separated by white space.
  std::vector<std::int32_t> encode(const std::string& text) const;
  /// Tokens separated by a space.
  std::string decode(const std::vector<std::int32_t>& ids) const;

 private:
  std::vector<std::string> tokens_;
};

struct Example {
  std::vector<std::int32_t> source;
  std::vector<std::int32_t> target;
  std::vector<std::int32_t> link;  // for each target token, the source position that holds the answer; -1: not counted
};

/// A task's settings, from the [data] table of a config: `data.length = 10`.
struct TaskKnob {
  std::string name;
  std::int64_t value = 0, minimum = 0, maximum = 0;
  std::string help = {};
  bool operator==(const TaskKnob&) const = default;
};

class Task {
 public:
  virtual ~Task() = default;
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
  virtual std::int32_t separator() const = 0;  // between source and target; starts a decoder's target
  virtual std::vector<TaskKnob> knobs() const = 0;
  virtual std::int64_t source_length() const = 0;
  virtual std::int64_t target_length() const = 0;
  /// True when the source alone decides every target token, one for each of its own: then an encoder can learn it.
  virtual bool aligned() const = 0;
  /// True when each target token is the one after its source token: a decoder, and nothing else, reads the source
  /// alone.
  virtual bool continues() const { return false; }
  /// Any sequence of the task, into a reused example.
  virtual void draw(rng::Generator& random, Example& example) const = 0;
  /// Any sequence held out, or any other. Unless said otherwise, draws until held_out(source) fits; throws ConfigError
  /// when the task seems to have none such.
  virtual void draw_side(bool held_out, rng::Generator& random, Example& example) const;
  /// The target and its links for a source that a user typed; throws ConfigError when the rule does not apply.
  virtual void answer(Example& example) const = 0;
};

/// True for the tenth of all sources that no training batch contains: their hash is 0 mod 10. The hash is FNV-1a
/// (64 bits, Fowler, Noll and Vo) over the ids as little-endian 32-bit words, its high half folded onto the low one.
bool held_out(const std::vector<std::int32_t>& source);

struct TaskEntry {
  std::string name;
  std::unique_ptr<Task> (*make)(const std::vector<TaskKnob>& settings);
};
/// Every built-in task. A new one is a file and a line here.
const std::vector<TaskEntry>& tasks();
/// The task that learns from a file, which the table above does not hold: data/text.h.
constexpr const char* kTextTask = "text";
/// Only name and value of a setting count; what is not set keeps its default. Throws ConfigError with one line a
/// problem: an unknown name or knob (with a suggestion), a value out of range, knobs that contradict each other or
/// leave nothing to train on or to hold out.
std::unique_ptr<Task> make_task(const std::string& name, const std::vector<TaskKnob>& settings = {});

}  // namespace tapehead
