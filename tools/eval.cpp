// tapehead eval: how a model does on sequences that neither its training nor its own evaluation has seen.
#include <fmt/format.h>

#include <cmath>

#include "autograd/error.h"
#include "tools/command.h"
#include "tools/session.h"
#include "train/shards.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

struct EvalFlags {
  std::string model, data;
  std::int64_t sequences = 1000;
  std::optional<std::int64_t> seed;
  std::int64_t threads = 1;
};

void run_eval(const EvalFlags& flags, Command& command) {
  const Session session = Session::open(flags.model, flags.data);
  // Not the seed that training evaluated with: these sequences decided nothing.
  const std::uint64_t seed = flags.seed ? static_cast<std::uint64_t>(*flags.seed) : session.file.config.seed + 1;
  const Batch batch = session.held_out(flags.sequences, seed);
  command.start();
  set_threads(flags.threads);
  const Evaluation e = Shards(*session.model, static_cast<int>(flags.threads)).evaluate(batch);
  if (!std::isfinite(e.loss))
    throw Error(error_line("eval", fmt::format("the loss of {} is {}", session.path, e.loss), {},
                           "tapehead info shows whether its weights are finite"));
  command.say(fmt::format(
      "{}\n{} unseen sequences, seed {}: exact match {}, token accuracy {}, loss {:.4f} nats a token\n",
      session.describe(), grouped(flags.sequences), seed, percent(e.exact_match), percent(e.token_accuracy), e.loss));
  command.answer({{"task", session.task->name()},
                  {"sequences", flags.sequences},
                  {"seed", seed},
                  {"loss", json_number(e.loss)},
                  {"exact_match", e.exact_match},
                  {"token_accuracy", e.token_accuracy}});
}

}  // namespace

void add_eval(Options& options, Command& command) {
  auto flags = std::make_shared<EvalFlags>();
  options.add("model", flags->model, "a run folder or a checkpoint").required().type("RUN|CKPT");
  options.add("--data", flags->data, "the text that a model of text was trained on").type("FILE");
  options.add("--sequences", flags->sequences, "how many sequences to draw").range(1, 1'000'000);
  add_seed(options, flags->seed, "of the sequences; the training's plus 1 if not given");
  add_threads(options, flags->threads);
  options.run([flags, &command] { run_eval(*flags, command); });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
