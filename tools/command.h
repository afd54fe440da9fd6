// What the verbs of the command share. A verb is one file tools/VERB.cpp and one line in the table of command.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autograd/real.h"
#include "train/config.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// One call of the command. Until start() an error means that the input is wrong (exit 2, nothing was started); after
/// it, that the work failed (exit 1).
class Command {
 public:
  void start() { started_ = true; }
  bool started() const { return started_; }
  int exit_code = 0;
  bool json = false, quiet = false;

  /// Prints to stdout; nothing with --json, whose last line is the only one.
  void say(const std::string& text) const;
  /// With --json, the last line of stdout.
  void answer(const nlohmann::ordered_json& object) const;

 private:
  bool started_ = false;
};

struct Verb {
  const char* name;
  const char* summary;
  void (*add)(CLI::App& app, Command& command);  // declares options and the callback that does the work
};

void add_train(CLI::App& app, Command& command);
void add_eval(CLI::App& app, Command& command);
void add_generate(CLI::App& app, Command& command);
void add_inspect(CLI::App& app, Command& command);
void add_explain(CLI::App& app, Command& command);
void add_gradcheck(CLI::App& app, Command& command);
void add_tasks(CLI::App& app, Command& command);
void add_info(CLI::App& app, Command& command);

/// --json and --double, which main() has read already.
void add_output_options(CLI::App& app, Command& command);
/// --threads, checked; sets the number of threads of every parallel region. Returns the value through `threads`.
void add_threads_option(CLI::App& app, int& threads);
/// Threads that this process may use: its affinity, and its share of the processors when a container limits it.
int available_threads();

/// The number as JSON: null when it is not finite.
nlohmann::ordered_json json_number(double value);
/// "100 %", "99.8 %": three digits, never rounded up to 100.
std::string percent(double share);
/// "101,376"
std::string grouped(std::int64_t number);

}  // namespace tapehead::inline TAPEHEAD_REAL
