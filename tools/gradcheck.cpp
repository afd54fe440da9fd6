// tapehead gradcheck: every op, or the whole of a model and its loss, against differences. Always in double.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "autograd/error.h"
#include "autograd/gradcheck_ops.h"
#include "tools/command.h"
#include "train/config.h"
#include "train/shards.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

struct GradcheckFlags {
  std::string task;
  std::vector<std::string> set;
  std::optional<std::int64_t> seed;
};

nlohmann::ordered_json report(const std::string& name, const GradcheckResult& result, double tolerance,
                              Command& command) {
  const bool undecided = !result.passed && result.index.empty();  // differences do not settle: nothing is compared
  command.say(undecided ? fmt::format("{:<42} undecided\n", name)
                        : fmt::format("{:<42} {}  error {:.1e} (limit {:.0e})\n", name,
                                      result.passed ? "passed" : "FAILED", result.error, tolerance));
  if (!result.passed) {
    command.exit_code = 1;
    fmt::print(stderr, "{}\n", result.message);
  }
  return {{"name", name}, {"passed", result.passed}, {"error", json_number(result.error)}};
}

nlohmann::ordered_json check_ops(const GradcheckFlags& flags, Command& command) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  Gradcheck gradcheck_options;
  gradcheck_options.seed = static_cast<std::uint64_t>(flags.seed.value_or(1));
  for (const OpCheck& check : op_checks())
    all.push_back(report(check.name(), gradcheck(check, gradcheck_options), gradcheck_options.tolerance, command));
  return all;
}

// The loss of two training sequences as a function of every parameter of the model.
nlohmann::ordered_json check_model(const Config& config, Command& command) {
  constexpr std::int64_t kSequences = 2;
  const std::unique_ptr<Task> task = make_task(config.task, config.data);
  Model model(config.model_for(*task), config.seed);
  // Trained weights are of order one; at their small first values some gradients would drown in rounding.
  for (const NamedParameter& p : unique_parameters(model.net)) {
    if (p.parameter.shape.rank() != 2) continue;
    const std::span<Real> values = model.parameters.value(p.parameter);
    Real squares = 0;
    for (const Real x : values) squares += x * x;
    const Real root = std::sqrt(squares / static_cast<Real>(values.size()));
    for (Real& x : values) x *= Real(0.2) / root;
  }
  BatchSource data(*task, layout_of(config.model.kind), kSequences, config.seed);
  const Batch batch = data.training(1);
  std::vector<std::pair<std::string, Parameter>> names;
  for (const NamedParameter& p : unique_parameters(model.net)) names.emplace_back(p.name, p.parameter);
  const auto loss = [&](Tape& tape) {
    return record_loss(tape, record_logits(tape, model.net, batch, 0, kSequences), batch, 0, kSequences,
                       static_cast<Real>(config.train.label_smoothing));
  };
  Gradcheck options;
  options.tolerance = 1e-6;
  options.seed = config.seed;
  const std::string name = fmt::format("{} ({}), {} parameters", config.task, name_of(config.model.kind),
                                       grouped(parameter_count(model.net)));
  return nlohmann::ordered_json::array(
      {report(name, gradcheck(name, loss, model.parameters, names, options), options.tolerance, command)});
}

void run_gradcheck(const GradcheckFlags& flags, Command& command) {
  if (flags.task.empty() && !flags.set.empty())
    throw ConfigError(error_line("gradcheck", "--set " + flags.set[0] + " without a task, which it would change", {},
                                 "name a task, as in tapehead gradcheck copy"));
  std::optional<Config> config;
  if (!flags.task.empty()) {
    config = Config::defaults(flags.task);
    config->seed = static_cast<std::uint64_t>(flags.seed.value_or(1));
    for (const std::string& assignment : flags.set) config->set(assignment);
    config->check();
  }
  command.start();
  const nlohmann::ordered_json checks = config ? check_model(*config, command) : check_ops(flags, command);
  command.answer({{"passed", command.exit_code == 0}, {"checks", checks}});
}

}  // namespace

void add_gradcheck(Options& options, Command& command) {
  auto flags = std::make_shared<GradcheckFlags>();
  options.add("task", flags->task, "its whole model and loss; every op if not given").type("TASK");
  options.add("--set", flags->set, "a setting of the model, as for train").type("KEY=VALUE");
  add_seed(options, flags->seed, "of values and directions; 1 unless given");
  options.run([flags, &command] { run_gradcheck(*flags, command); });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
