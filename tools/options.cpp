#include "tools/options.h"

#include <CLI/CLI.hpp>

#include "autograd/error.h"

namespace tapehead {

Option& Option::required() { return option_->required(), *this; }
Option& Option::type(const char* name) { return option_->type_name(name), *this; }
Option& Option::range(std::int64_t least, std::int64_t most) {
  CLI::Range range(least, most);
  range.description("");  // its text would push --help's own beyond the line
  return option_->check(range), *this;
}
Option& Option::one_of(std::initializer_list<const char*> words) {
  return option_->check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end()))), *this;
}

namespace {
// Of an option given twice the last one counts, so that a script can append to a command line.
Option single(CLI::Option* option) { return Option(option->take_last()); }
}  // namespace

// An empty word comes of a variable that a script did not set: taken for "not given", it would be passed over.
Option Options::add(const char* name, std::string& value, const char* help) {
  CLI::Option* option = app_.add_option(name, value, help);
  option->check([](const std::string& word) { return std::string(word.empty() ? "the value is empty" : ""); });
  if (!value.empty()) option->capture_default_str();
  return single(option);
}
Option Options::add(const char* name, std::vector<std::string>& values, const char* help) {
  return Option(app_.add_option(name, values, help)->allow_extra_args(false));
}
Option Options::add(const char* name, std::int64_t& value, const char* help) {
  return single(app_.add_option(name, value, help)->capture_default_str());
}
Option Options::add(const char* name, std::optional<std::int64_t>& value, const char* help) {
  return single(app_.add_option(name, value, help));
}
Option Options::add(const char* name, double& value, const char* help) {
  return single(app_.add_option(name, value, help)->capture_default_str());
}
void Options::flag(const char* name, bool& value, const char* help) { app_.add_flag(name, value, help); }
void Options::run(std::function<void()> work) { app_.callback(std::move(work)); }

CommandLine::CommandLine(const char* name, const char* description, const char* version, const char* footer)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->set_version_flag("--version", std::string(name) + " " + version);
  app_->require_subcommand(1);
  app_->footer(footer);
  app_->get_formatter()->column_width(28);  // what verbs inherit; lines stay within 80 columns
}

CommandLine::~CommandLine() = default;

Options CommandLine::verb(const char* name, const char* summary) {
  return Options(*app_->add_subcommand(name, summary));
}

void CommandLine::run(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version: prints what they ask for
    app_->exit(e);
  } catch (const CLI::ParseError& e) {
    std::string fact = e.what();
    for (char& c : fact)
      if (c == '\n') c = ' ';
    const auto verbs = app_->get_subcommands();
    const std::string help = app_->get_name() + (verbs.empty() ? "" : " " + verbs.front()->get_name()) + " --help";
    throw UsageError(error_line("command", fact, {}, help + " shows the options"));
  }
}

}  // namespace tapehead
