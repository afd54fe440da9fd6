// tapehead info: what a checkpoint holds.
#include <fmt/format.h>

#include "tools/command.h"
#include "tools/session.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

void run_info(const std::string& path, bool config, Command& command) {
  const Session session = Session::open(path);
  const CheckpointFile& file = session.file;
  const std::string state = file.training ? "yes: training can go on from it" : "no";
  command.say(fmt::format("{}\n{}\n\nprecision         {}\noptimizer state   {}\n", session.path, session.describe(),
                          file.width == 8 ? "double" : "float", state));
  if (file.loss == file.loss)
    command.say(fmt::format("held-out          exact match {}, token accuracy {}, loss {:.4f} nats\n",
                            percent(file.exact_match), percent(file.token_accuracy), file.loss));
  command.say("\n" + summary(*session.model));
  if (config) command.say("\n" + file.config.to_toml());
  command.answer({{"task", session.task->name()},
                  {"kind", name_of(file.config.model.kind)},
                  {"step", file.step},
                  {"seed", file.config.seed},
                  {"parameters", parameter_count(session.model->net)},
                  {"precision", file.width == 8 ? "double" : "float"},
                  {"training_state", file.training.has_value()},
                  {"loss", json_number(file.loss)},
                  {"exact_match", json_number(file.exact_match)},
                  {"token_accuracy", json_number(file.token_accuracy)},
                  {"vocabulary", session.vocabulary().size()}});
}

}  // namespace

void add_info(Options& options, Command& command) {
  struct Flags {
    std::string path;
    bool config = false;
  };
  auto flags = std::make_shared<Flags>();
  options.add("model", flags->path, "a run folder or a checkpoint").required().type("RUN|CKPT");
  options.flag("--config", flags->config, "also print its config, as TOML");
  options.run([flags, &command] { run_info(flags->path, flags->config, command); });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
