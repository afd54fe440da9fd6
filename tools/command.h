// What the verbs of the command share. A verb is one file tools/VERB.cpp and one line in the table of command.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autograd/real.h"
#include "tools/options.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// One call of the command. Until start() an error means that the input is wrong (exit 2, nothing was started); after
/// it, that the work failed (exit 1).
class Command {
 public:
  void start() { started_ = true; }
  bool started() const { return started_; }
  int exit_code = 0;
  std::string program = "tapehead";  // as it was called, for commands that a person can copy
  bool json = false, quiet = false;

  /// Prints to stdout; nothing with --json, whose last line is the only one.
  void say(const std::string& text) const;
  /// errno of the first output that could not be written, 0: all was. A reader that went away is no error.
  int output_error() const { return output_error_; }
  /// With --json, the last line of stdout.
  void answer(const nlohmann::ordered_json& object) const;

 private:
  void print(const std::string& text) const;
  bool started_ = false;
  mutable int output_error_ = 0;  // errno of the first write to stdout that failed
};

struct Verb {
  const char* name;
  const char* summary;
  void (*add)(Options& options, Command& command);  // declares options and the callback that does the work
};

void add_train(Options& options, Command& command);
void add_eval(Options& options, Command& command);
void add_generate(Options& options, Command& command);
void add_inspect(Options& options, Command& command);
void add_compare(Options& options, Command& command);
void add_explain(Options& options, Command& command);
void add_gradcheck(Options& options, Command& command);
void add_tasks(Options& options, Command& command);
void add_info(Options& options, Command& command);
void add_bench(Options& options, Command& command);

/// Declares --seed, a whole number from 0.
void add_seed(Options& options, std::optional<std::int64_t>& seed, const char* help);
/// Declares --threads, from 1 to 256; set_threads() gives every parallel region that many.
void add_threads(Options& options, std::int64_t& threads);
void set_threads(std::int64_t threads);
/// Threads that this process may use: its affinity, and its share of the processors when a container limits it.
std::int64_t available_threads();

/// The number as JSON: null when it is not finite.
nlohmann::ordered_json json_number(double value);
/// "100 %", "99.8 %": three digits, never rounded up to 100.
std::string percent(double share);
/// "101,376"
std::string grouped(std::int64_t number);
/// "1 head", "2 heads"
std::string counted(std::int64_t number, const std::string& thing);
/// The word as a shell reads it: in quotes when it holds more than letters, digits and `_./:=,+-`.
std::string shell_word(const std::string& word);

}  // namespace tapehead::inline TAPEHEAD_REAL
