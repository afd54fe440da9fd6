// Config files: TOML in and out. Reading collects every problem and changes nothing unless there is none.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "autograd/error.h"
#include "train/config_keys.h"
#include "train/files.h"

namespace tapehead {

namespace {

constexpr std::size_t kLargestFile = 1 << 20;  // bytes; a full config has about a thousand

bool is_table_name(std::string_view name) { return name == "model" || name == "train" || name == "data"; }

// The value as written, and as shown in a message.
struct Read {
  SettingValue value;
  std::string shown;
};

Read read(const toml::node& node) {
  if (const auto* truth = node.as_boolean()) return {truth->get(), truth->get() ? "true" : "false"};
  if (const auto* integer = node.as_integer()) return {integer->get(), std::to_string(integer->get())};
  if (const auto* real = node.as_floating_point()) return {real->get(), number_text(real->get())};
  if (const auto* text = node.as_string()) return {text->get(), in_quotes(text->get())};
  if (const auto* array = node.as_array()) {
    std::vector<std::string> words;
    for (const toml::node& word : *array)
      if (const auto* text = word.as_string()) words.push_back(text->get());
    if (words.size() == array->size()) return {words, "an array"};
  }
  return {std::string(), node.is_table() ? "a table" : node.is_array() ? "an array" : "a date or time"};
}

// The line of a table header without a name, such as "[=]", or 0. toml++ 3.3 takes it for granted that a name follows
// (an assertion, and undefined behaviour without it), so that its parser must not see such a line.
std::size_t nameless_header(const std::string& text) {
  constexpr const char *kByteOrderMark = "\xef\xbb\xbf", *kBlank = " \t";
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::size_t at = line.find_first_not_of(kBlank, number == 1 && line.starts_with(kByteOrderMark) ? 3 : 0);
    if (at == std::string::npos || line[at] != '[') continue;
    at = line.find_first_not_of(kBlank, at + (line.compare(at, 2, "[[") == 0 ? 2 : 1));
    const char first = at == std::string::npos ? '\0' : line[at];
    const bool letter = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
    if (!letter && !(first >= '0' && first <= '9') && (first == '\0' || !std::strchr("_-\"'", first))) return number;
  }
  return 0;
}

class Reader {
 public:
  Reader(Config& config, std::string file) : config_(config), file_(std::move(file)) {}

  void read_all(const toml::table& table) {
    task_known_ = read_task(table);
    keys_ = config_keys(config_);
    walk(table, "");
  }

  void throw_if_any() {
    if (problems_.empty()) return;
    std::stable_sort(problems_.begin(), problems_.end(), [](const auto& a, const auto& b) { return a.line < b.line; });
    std::string lines;
    for (const Problem& problem : problems_) lines += (lines.empty() ? "" : "\n") + problem.text;
    throw ConfigError(lines);
  }

  void add(toml::source_index line, const std::string& fact) {
    problems_.push_back({line, error_line("config", file_ + " line " + std::to_string(line) + ": " + fact)});
  }

 private:
  struct Problem {
    toml::source_index line;
    std::string text;
  };

  void add(const toml::node& node, const std::string& fact) { add(node.source().begin.line, fact); }

  bool read_task(const toml::table& table) {
    const toml::node* node = table.get("task");
    if (!node) {
      if (config_.task.empty()) add(1, "no task is named. Hint: write task = \"copy\"");
      return !config_.task.empty();
    }
    const auto* text = node->as_string();
    if (!text) return add(*node, "task is " + read(*node).shown + ", expected the name of a task"), false;
    if (config_.task == text->get()) return true;
    if (!config_.task.empty())
      return add(*node, "task is " + in_quotes(text->get()) + ", but " + in_quotes(config_.task) + " was asked for"),
             false;
    try {
      config_ = Config::defaults(text->get());
      return true;
    } catch (const ConfigError& error) {
      problems_.push_back({node->source().begin.line, error.what()});
      return false;
    }
  }

  // [model.layer.2]
  void read_layers(const toml::table& layers) {
    for (const auto& [key, node] : layers) {
      const std::string name = "model.layer." + std::string(key.str());
      const auto number = layer_of_key(name);
      if (!number || !node.is_table()) {
        add(node, name + " is no layer's table. Hint: write [model.layer.0]");
        continue;
      }
      add_layer(config_, *number);
      keys_ = config_keys(config_);
      walk(*node.as_table(), name + '.');
    }
  }

  void walk(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) {
      const std::string leaf(key.str()), name = prefix + leaf;
      if (prefix.empty() && leaf == "task") continue;
      if (prefix.empty() && is_table_name(leaf)) {
        if (!node.is_table())
          add(node, fmt::format("{0} is {1}, expected a table [{0}]", leaf, read(node).shown));
        else if (leaf != "data" || task_known_)  // without a task nobody knows its settings
          walk(*node.as_table(), leaf + ".");
        continue;
      }
      if (name == "model.layer" && node.is_table()) {
        read_layers(*node.as_table());
        continue;
      }
      // A quoted key may hold a dot: "model.heads" at the top is not heads of [model].
      const ConfigKey* found = leaf.find('.') == std::string::npos ? find_key(keys_, name) : nullptr;
      if (!found) {
        add(node, unknown_key(keys_, name));
        continue;
      }
      const Read written = read(node);
      const bool scalar = node.is_boolean() || node.is_number() || node.is_string() ||
                          std::holds_alternative<std::vector<std::string>>(written.value);
      const std::string problem = scalar ? found->assign(written.value, written.shown)
                                         : name + " is " + written.shown + ", expected " + found->type();
      if (!problem.empty()) add(node, problem);
    }
  }

  Config& config_;
  std::string file_;
  std::vector<ConfigKey> keys_;
  bool task_known_ = false;
  std::vector<Problem> problems_;
};

}  // namespace

void Config::read_toml(const std::string& path) { parse_toml(read_file(path, kLargestFile), path); }

void Config::parse_toml(const std::string& text, const std::string& name) {
  Config draft = *this;
  Reader reader(draft, name);
  if (const std::size_t line = nameless_header(text))
    reader.add(static_cast<toml::source_index>(line), "expected the name of a table after [");
  reader.throw_if_any();
  try {
    reader.read_all(toml::parse(text));
  } catch (const toml::parse_error& error) {
    reader.add(error.source().begin.line, std::string(error.description()));
  }
  reader.throw_if_any();
  *this = draft;
}

std::string Config::to_toml() const {
  Config copy = *this;
  std::string text = "task = \"" + task + "\"\n", table;
  for (const ConfigKey& key : config_keys(copy)) {
    if (!key.is_set()) continue;
    const std::size_t dot = key.name.rfind('.');
    const std::string prefix = dot == std::string::npos ? "" : key.name.substr(0, dot);
    if (prefix != table) text += "\n[" + (table = prefix) + "]\n";
    text += key.name.substr(dot + 1) + " = " + key.text() + "\n";  // npos + 1 is 0
  }
  return text;
}

}  // namespace tapehead
