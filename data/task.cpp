#include "data/task.h"

#include <algorithm>
#include <sstream>
#include <unordered_set>

#include "autograd/error.h"
#include "data/builtin.h"
#include "data/text.h"

namespace tapehead {

namespace {
constexpr const char* kSpace = " \t\n\v\f\r";
}

Vocabulary::Vocabulary(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
  std::unordered_set<std::string> seen;
  for (const std::string& token : tokens_) {
    if (token.empty() || token.find_first_of(kSpace) != std::string::npos)
      throw ConfigError(error_line("vocabulary", "token " + in_quotes(token) + " is empty or holds white space"));
    if (!seen.insert(token).second)
      throw ConfigError(error_line("vocabulary", "token " + in_quotes(token) + " is given twice"));
  }
}

std::int32_t Vocabulary::id(const std::string& token) const {
  const auto found = std::find(tokens_.begin(), tokens_.end(), token);
  if (found != tokens_.end()) return static_cast<std::int32_t>(found - tokens_.begin());
  // Every single letter is one edit away from every other: a suggestion would be noise.
  const std::string close =
      token.size() > 1 ? did_you_mean(token, tokens_.data(), tokens_.data() + tokens_.size()) : "";
  if (!close.empty())
    throw ConfigError(
        error_line("vocabulary", "no token " + in_quotes(token) + ". Did you mean " + in_quotes(close) + "?"));
  constexpr std::size_t kListed = 24;
  std::string known;
  for (std::size_t i = 0; i < std::min(kListed, tokens_.size()); ++i) known += (i ? " " : "") + tokens_[i];
  if (tokens_.size() > kListed) known += " ... " + tokens_.back();
  throw ConfigError(error_line("vocabulary", "no token " + in_quotes(token), "", "the tokens are " + known));
}

std::vector<std::int32_t> Vocabulary::encode(const std::string& text) const {
  std::istringstream words(text);
  std::vector<std::int32_t> ids;
  for (std::string word; words >> word;) ids.push_back(id(word));
  return ids;
}

std::string Vocabulary::decode(const std::vector<std::int32_t>& ids) const {
  std::string text;
  for (const std::int32_t id : ids) text += (text.empty() ? "" : " ") + (*this)[id];
  return text;
}

bool held_out(const std::vector<std::int32_t>& source) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::int32_t id : source)
    for (int shift = 0; shift < 32; shift += 8)
      hash = (hash ^ (static_cast<std::uint32_t>(id) >> shift & 0xff)) * 0x100000001b3;
  // The lowest bit of FNV-1a is the parity of the ids; folded with the high half it is not, so that a task about
  // parity can be held out fairly.
  return (hash ^ hash >> 32) % 10 == 0;
}

void Task::draw_side(bool want_held_out, rng::Generator& random, Example& example) const {
  // Out of N sources, each as likely as any, 10 000 draws miss a single wanted one with probability exp(-10 000 / N);
  // where N is large about a tenth is held out and a handful of draws is enough.
  for (int tries = 0; tries < 10'000; ++tries) {
    draw(random, example);
    if (tapehead::held_out(example.source) == want_held_out) return;
  }
  throw ConfigError(
      error_line(name(), std::string("no source is ") + (want_held_out ? "held out" : "left to train on"), "",
                 "a source is held out by its hash, one in ten; let data.* allow for more different sources"));
}

const std::vector<TaskEntry>& tasks() {
  static const std::vector<TaskEntry> table = {
      {"copy", make_copy},
      {"lookup", make_lookup},
  };
  return table;
}

std::unique_ptr<Task> make_task(const std::string& name, const std::vector<TaskKnob>& settings) {
  if (name == kTextTask) return make_text(settings);
  std::vector<std::string> names;
  for (const TaskEntry& entry : tasks()) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    std::unique_ptr<Task> task = entry.make(settings);
    for (const bool side : {false, true}) {
      rng::Generator random(rng::Stream(0, rng::Purpose::check));
      Example example;
      task->draw_side(side, random, example);
    }
    return task;
  }
  const std::string close = did_you_mean(name, names.data(), names.data() + names.size());
  if (!close.empty())
    throw ConfigError(
        error_line("task", "unknown task " + in_quotes(name) + ". Did you mean " + in_quotes(close) + "?"));
  std::string known;
  for (const std::string& entry : names) known += (known.empty() ? "" : ", ") + entry;
  throw ConfigError(error_line("task", "unknown task " + in_quotes(name), "", "the tasks are " + known));
}

std::vector<TaskKnob> with_settings(const std::string& task, std::vector<TaskKnob> knobs,
                                    const std::vector<TaskKnob>& settings) {
  std::vector<std::string> names;
  names.reserve(knobs.size());
  for (const TaskKnob& knob : knobs) names.push_back(knob.name);
  std::string problems;
  for (const TaskKnob& setting : settings) {
    const auto at = std::find(names.begin(), names.end(), setting.name) - names.begin();
    if (at == static_cast<std::ptrdiff_t>(names.size())) {
      const std::string close = did_you_mean(setting.name, names.data(), names.data() + names.size());
      problems += error_line(task, "unknown setting " + in_quotes("data." + setting.name) +
                                       (close.empty() ? "" : ". Did you mean " + in_quotes("data." + close) + "?")) +
                  '\n';
      continue;
    }
    TaskKnob& knob = knobs[static_cast<std::size_t>(at)];
    knob.value = setting.value;
    if (knob.value < knob.minimum || knob.value > knob.maximum)
      problems += error_line(task, "data." + knob.name + " is " + std::to_string(knob.value) + ", outside " +
                                       std::to_string(knob.minimum) + " to " + std::to_string(knob.maximum)) +
                  '\n';
  }
  if (!problems.empty()) throw ConfigError(problems.substr(0, problems.size() - 1));
  return knobs;
}

std::vector<std::string> symbol_names(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i)
    names.push_back(i < 26 ? std::string(1, static_cast<char>('a' + i)) : "s" + std::to_string(i));
  return names;
}

void draw_distinct(rng::Generator& random, std::int32_t n, std::span<std::int32_t> scratch,
                   std::span<std::int32_t> drawn) {
  for (std::int32_t i = 0; i < n; ++i) scratch[static_cast<std::size_t>(i)] = i;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const auto left = static_cast<std::uint32_t>(n) - static_cast<std::uint32_t>(i);
    std::swap(scratch[i], scratch[i + random.below(left)]);
    drawn[i] = scratch[i];
  }
}

}  // namespace tapehead
