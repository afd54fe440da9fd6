// tapehead eval: how a model does on sequences that neither its training nor its own evaluation has seen.
#include <fmt/format.h>

#include "tools/command.h"
#include "tools/session.h"
#include "train/shards.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

struct EvalOptions {
  std::string model;
  std::int64_t sequences = 1000;
  std::uint64_t seed = 0;
  bool seed_given = false;
  int threads = 1;
};

void run_eval(const EvalOptions& options, Command& command) {
  const Session session = Session::open(options.model);
  // Not the seed that training evaluated with: these sequences decided nothing.
  const std::uint64_t seed = options.seed_given ? options.seed : session.file.config.seed + 1;
  const Batch batch = session.held_out(options.sequences, seed);
  command.start();
  const Evaluation e = Shards(*session.model, options.threads).evaluate(batch);
  command.say(fmt::format(
      "{}\n{} unseen sequences, seed {}: exact match {}, token accuracy {}, loss {:.4f} nats a token\n",
      session.describe(), grouped(options.sequences), seed, percent(e.exact_match), percent(e.token_accuracy), e.loss));
  command.answer({{"task", session.task->name()},
                  {"sequences", options.sequences},
                  {"seed", seed},
                  {"loss", json_number(e.loss)},
                  {"exact_match", e.exact_match},
                  {"token_accuracy", e.token_accuracy}});
}

}  // namespace

void add_eval(CLI::App& app, Command& command) {
  auto options = std::make_shared<EvalOptions>();
  app.add_option("model", options->model, "a run folder or a checkpoint")->required()->type_name("RUN|CKPT");
  app.add_option("--sequences", options->sequences, "how many sequences to draw")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}))
      ->capture_default_str();
  CLI::Option* seed =
      app.add_option("--seed", options->seed, "of the sequences; the training's own plus 1 unless given");
  add_threads_option(app, options->threads);
  app.callback([options, seed, &command] {
    options->seed_given = seed->count() > 0;
    run_eval(*options, command);
  });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
