// The table of verbs, and what turns errors into lines and exit codes: 0 done; 1 failed while running; 2 the command,
// config or input is wrong; 130 stopped by Ctrl-C after saving.
#include "tools/command.h"

#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>
#include <new>
#include <sstream>

#include "autograd/error.h"
#include "tools/inspect/terminal.h"
#include "tools/inspect/text.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

const std::vector<Verb> kVerbs = {
    {"train", "train a model on a task, and watch it learn", add_train},
    {"eval", "loss and accuracy on fresh held-out sequences", add_eval},
    {"generate", "continue a prompt", add_generate},
    {"inspect", "heatmaps of learned attention", add_inspect},
    {"compare", "two runs or checkpoints: settings, results, heads", add_compare},
    {"explain", "attention step by step, with your own numbers", add_explain},
    {"gradcheck", "every gradient against differences, in double", add_gradcheck},
    {"tasks", "what can be learned here", add_tasks},
    {"info", "what a checkpoint holds", add_info},
    {"bench", "step time of a standard workload", add_bench},
};

constexpr std::int64_t kMostThreads = 256;

// Names in it may be hostile: what could move a terminal's cursor or reorder its text is spelled out.
int print_error(const std::string& lines, int code) {
  const bool unicode = detect_terminal(STDERR_FILENO).unicode;
  std::istringstream each(lines);
  for (std::string line; std::getline(each, line);) std::fputs((text::line(line, unicode) + "\n").c_str(), stderr);
  return code;
}

// A verb that does not exist; CLI11 would only say that an argument was not expected.
std::string unknown_verb(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::vector<std::string> names;
  names.reserve(std::size(kVerbs));
  for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  const std::string word = argv[1];
  if (std::find(names.begin(), names.end(), word) != names.end()) return {};
  const std::string close = did_you_mean(word, names.data(), names.data() + names.size());
  return close.empty() ? error_line("command", "unknown verb '" + word + "'", {}, "tapehead --help lists the verbs")
                       : error_line("command", "unknown verb '" + word + "'. Did you mean '" + close + "'?");
}

int run_reporting(CommandLine& line, const Command& command, int argc, char** argv) {
  try {
    line.run(argc, argv);
    // What CLI11 has printed, too: help and version.
    if (const int error = std::cout.flush() ? command.output_error() : errno)
      return print_error(
          error_line("command", std::string("cannot write to the standard output: ") + std::strerror(error)), 1);
    return command.exit_code;
  } catch (const UsageError& e) {
    return print_error(e.what(), 2);
  } catch (const ConfigError& e) {
    return print_error(e.what(), 2);
  } catch (const Error& e) {
    return print_error(e.what(), command.started() ? 1 : 2);
  } catch (const std::bad_alloc&) {
    return print_error(
        error_line("memory", "there is not enough memory for this", {}, "choose a smaller model or batch"),
        command.started() ? 1 : 2);
  } catch (const std::exception& e) {
    return print_error(error_line("command", e.what()), 1);
  }
}

}  // namespace

int run_command(int argc, char** argv) {
  if (const std::string line = unknown_verb(argc, argv); !line.empty()) return print_error(line, 2);
  CommandLine line("tapehead", "Train toy transformers, and see what their attention heads learn.", TAPEHEAD_VERSION,
                   "First steps: tapehead train copy, then tapehead inspect runs/copy-001");
  Command command;
  command.program = shell_word(argv[0]);
  bool wide = false;  // main() has read it already
  for (const Verb& verb : kVerbs) {
    Options options = line.verb(verb.name, verb.summary);
    options.flag("--json", command.json, "print one JSON object as the last line");
    options.flag("--double", wide, "compute in double precision");
    verb.add(options, command);
  }
  return run_reporting(line, command, argc, argv);
}

void Command::print(const std::string& text) const {
  // Flushed at once: before whatever goes to stderr next.
  const bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  if (!written && errno != EPIPE && output_error_ == 0) output_error_ = errno;
}

void Command::say(const std::string& text) const {
  if (!json) print(text);
}

void Command::answer(const nlohmann::ordered_json& object) const {
  if (json) print(object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void add_seed(Options& options, std::optional<std::int64_t>& seed, const char* help) {
  options.add("--seed", seed, help).range(0, (std::int64_t{1} << 53) - 1);
}

void add_threads(Options& options, std::int64_t& threads) {
  threads = available_threads();
  options.add("--threads", threads, "1 to 256; they change no result").range(1, kMostThreads);
}

void set_threads(std::int64_t threads) { omp_set_num_threads(static_cast<int>(threads)); }

std::int64_t available_threads() {
  std::int64_t threads = omp_get_num_procs();  // heeds the affinity
  std::ifstream limit("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (limit >> quota >> period && period > 0)
    threads = std::min(threads, static_cast<std::int64_t>(std::ceil(quota / period)));
  return std::clamp(threads, std::int64_t{1}, kMostThreads);
}

nlohmann::ordered_json json_number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

std::string percent(double share) {
  if (share == 1) return "100 %";
  return fmt::format("{:.1f} %", std::min(std::floor(share * 1000) / 10, 99.9));
}

std::string counted(std::int64_t number, const std::string& thing) {
  return grouped(number) + " " + thing + (number == 1 ? "" : "s");
}

std::string shell_word(const std::string& word) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
