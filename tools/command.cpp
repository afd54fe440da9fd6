// The table of verbs, and what turns errors into lines and exit codes: 0 done; 1 failed while running; 2 the command,
// config or input is wrong; 130 stopped by Ctrl-C after saving.
#include "tools/command.h"

#include <fmt/format.h>
#include <omp.h>

#include <cmath>
#include <fstream>
#include <new>

#include "autograd/error.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

const std::vector<Verb> kVerbs = {
    {"train", "train a model on a task, and watch it learn", add_train},
    {"eval", "loss, token accuracy and exact match on fresh held-out data", add_eval},
    {"generate", "continue a prompt", add_generate},
    {"inspect", "heatmaps of learned attention", add_inspect},
    {"explain", "attention worked out step by step, with your own numbers if given", add_explain},
    {"gradcheck", "check every gradient against differences, in double precision", add_gradcheck},
    {"tasks", "what can be learned here", add_tasks},
    {"info", "what a checkpoint holds", add_info},
};

constexpr int kMostThreads = 256;

int print_error(const std::string& lines, int code) {
  fmt::print(stderr, "{}\n", lines);
  return code;
}

// A verb that does not exist; CLI11 would only say that an argument was not expected.
std::string unknown_verb(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  const std::string word = argv[1];
  if (std::find(names.begin(), names.end(), word) != names.end()) return {};
  const std::string close = did_you_mean(word, names.data(), names.data() + names.size());
  return close.empty() ? error_line("command", "unknown verb '" + word + "'", {}, "tapehead --help lists the verbs")
                       : error_line("command", "unknown verb '" + word + "'. Did you mean '" + close + "'?");
}

int run_parsed(CLI::App& app, Command& command, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return command.exit_code;
  } catch (const CLI::Success& e) {  // --help, --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::string text = e.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    const CLI::App* verb = app.get_subcommands().empty() ? nullptr : app.get_subcommands().front();
    const std::string help = "tapehead " + (verb ? verb->get_name() + " " : std::string()) + "--help shows the options";
    return print_error(error_line("command", text, {}, help), 2);
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
  CLI::App app("Train toy transformers, and see what their attention heads learn.", "tapehead");
  app.set_version_flag("--version", "tapehead " TAPEHEAD_VERSION);
  app.require_subcommand(1);
  app.footer("First steps: tapehead train copy, then tapehead inspect runs/copy-001");
  Command command;
  for (const Verb& verb : kVerbs) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    add_output_options(*sub, command);
    verb.add(*sub, command);
  }
  return run_parsed(app, command, argc, argv);
}

void Command::say(const std::string& text) const {
  if (!json) fmt::print("{}", text);
}

void Command::answer(const nlohmann::ordered_json& object) const {
  if (json) fmt::print("{}\n", object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void add_output_options(CLI::App& app, Command& command) {
  app.add_flag("--json", command.json, "print one JSON object as the last line");
  app.add_flag_callback(
      "--double", [] {}, "compute in double precision");
}

void add_threads_option(CLI::App& app, int& threads) {
  threads = available_threads();
  app.add_option("--threads", threads, "threads to use; the result is the same at any number")
      ->check(CLI::Range(1, kMostThreads))
      ->capture_default_str();
  app.parse_complete_callback([&threads] { omp_set_num_threads(threads); });
}

int available_threads() {
  int threads = omp_get_num_procs();  // heeds the affinity
  std::ifstream limit("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (limit >> quota >> period && period > 0) threads = std::min(threads, static_cast<int>(std::ceil(quota / period)));
  return std::clamp(threads, 1, kMostThreads);
}

nlohmann::ordered_json json_number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

std::string percent(double share) {
  if (share == 1) return "100 %";
  return fmt::format("{:.1f} %", std::min(std::floor(share * 1000) / 10, 99.9));
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
