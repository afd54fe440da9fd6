// The command line as verbs see it. CLI11 stays behind it: including its headers in every verb, in both precisions,
// would cost half of the build.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tapehead {

/// What a person typed is no command: one line for stderr, exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One option that was declared, to say more about it.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& required();
  Option& type(const char* name);  // what --help shows for its value: "DIR"
  Option& range(std::int64_t least, std::int64_t most);
  Option& filled();  // '' is refused, where it would pass for not given
  Option& one_of(std::initializer_list<const char*> words);

 private:
  CLI::Option* option_;
};

/// Declares a verb's options; names without dashes are positional. What a variable holds is the default that --help
/// shows. Variables must live until the command has run: the callback of run() keeps them.
class Options {
 public:
  explicit Options(CLI::App& app) : app_(app) {}
  Option add(const char* name, std::string& value, const char* help);
  Option add(const char* name, std::vector<std::string>& values, const char* help);  // once for each value
  Option add(const char* name, std::int64_t& value, const char* help);
  Option add(const char* name, std::optional<std::int64_t>& value, const char* help);
  Option add(const char* name, double& value, const char* help);
  void flag(const char* name, bool& value, const char* help);
  /// The work, done once everything is parsed and checked.
  void run(std::function<void()> work);

 private:
  CLI::App& app_;
};

class CommandLine {
 public:
  CommandLine(const char* name, const char* description, const char* version, const char* footer);
  ~CommandLine();
  Options verb(const char* name, const char* summary);
  /// Parses and runs the verb; after --help or --version it has printed and nothing ran. Throws UsageError, and
  /// whatever the verb throws.
  void run(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace tapehead
