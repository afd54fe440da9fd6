// tapehead generate: a model continues a prompt, the most likely token at a time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autograd/error.h"
#include "nn/generate.h"
#include "tools/command.h"
#include "tools/session.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

struct GenerateFlags {
  std::string model, prompt;
  std::optional<std::int64_t> tokens;  // as far as the task gives answers unless given
  std::int64_t threads = 1;
};

// How many target tokens from `done` on are the model's to say: up to the next one that does not count in the loss
// (a key of lookup is asked, not answered).
std::int64_t answers_from(const Task& task, std::size_t done) {
  Example example;
  rng::Generator random(rng::Stream(1, rng::Purpose::evaluation_data));
  task.draw(random, example);
  const auto begin = example.link.begin() + static_cast<std::ptrdiff_t>(std::min(done, example.link.size()));
  return std::find(begin, example.link.end(), -1) - begin;
}

void run_generate(const GenerateFlags& flags, Command& command) {
  const Session session = Session::open(flags.model);
  const Task& task = *session.task;
  if (session.layout() == Layout::aligned)
    throw ConfigError(error_line("generate", session.path + " is an encoder, which continues nothing", {},
                                 "tapehead inspect shows what it does with an input"));
  const Prompt prompt = read_prompt(task, flags.prompt);
  Example example{prompt.source, {}, {}};
  task.answer(example);  // refuses a source of another length or kind than those it was trained on
  const std::int64_t count = flags.tokens ? *flags.tokens : answers_from(task, prompt.target.size());
  if (count == 0)
    throw ConfigError(error_line("generate", "after this prompt " + task.name() + " asks and does not answer", {},
                                 "end the prompt with a question, or give --tokens"));
  std::vector<std::int32_t> source, ids;
  (session.layout() == Layout::split ? source : ids) = prompt.source;
  ids.push_back(task.separator());
  ids.insert(ids.end(), prompt.target.begin(), prompt.target.end());
  command.start();
  set_threads(flags.threads);
  const std::vector<std::int32_t> said = generate_greedy(*session.model, ids, source, count);
  command.say(fmt::format("{}\n", session.vocabulary().decode(said)));
  command.answer({{"prompt", flags.prompt}, {"text", session.vocabulary().decode(said)}});
}

}  // namespace

void add_generate(Options& options, Command& command) {
  auto flags = std::make_shared<GenerateFlags>();
  options.add("model", flags->model, "a run folder or a checkpoint").required().type("RUN|CKPT");
  options.add("--prompt", flags->prompt, "tokens: 'source', or 'source | target so far'").required();
  options.add("--tokens", flags->tokens, "how many; as many as the task answers if not given").range(1, 100'000);
  add_threads(options, flags->threads);
  options.run([flags, &command] { run_generate(*flags, command); });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
