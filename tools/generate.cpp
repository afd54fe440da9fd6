// tapehead generate: a model continues a prompt, a token at a time.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "autograd/error.h"
#include "data/text.h"
#include "nn/generate.h"
#include "tools/command.h"
#include "tools/inspect/heatmap.h"
#include "tools/inspect/text.h"
#include "tools/session.h"
#include "train/measures.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

struct GenerateFlags {
  std::string model, prompt, stop;
  Sampling sampling;
  std::optional<std::int64_t> seed;
  bool show_attention = false;
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

// For a terminal: control characters that a text taught the model are spelled out, line feeds and tabs stay.
std::string harmless(const std::string& text) {
  const bool unicode = detect_terminal(STDOUT_FILENO).unicode;
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\n\t", at), text.size());
    shown += text::line(std::string_view(text).substr(at, end - at), unicode);
    if (end < text.size()) shown += text[end];
    at = end + 1;
  }
  return shown;
}

// Every head while the model reads what it was given and what it said.
std::string drawn(const Session& session, const std::vector<std::int32_t>& source, std::vector<std::int32_t> ids,
                  const std::string& remake) {
  const auto context = static_cast<std::size_t>(session.model->config.context);
  if (ids.size() > context) ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(context));
  Batch batch;
  batch.sequences = 1;
  batch.source_length = static_cast<std::int64_t>(source.size());
  batch.target_length = static_cast<std::int64_t>(ids.size());
  batch.source = source;
  batch.inputs = ids;
  batch.targets.assign(ids.size(), Batch::kIgnore);
  batch.links.assign(ids.size(), -1);
  const Figure figure{detect_terminal(STDOUT_FILENO), remake, session.describe()};
  return draw_overview(attention_maps(*session.model, batch, 0, session.vocabulary().tokens()), figure);
}

std::string remake_command(const GenerateFlags& flags, const Command& command) {
  const Sampling standard, &s = flags.sampling;
  std::string line =
      fmt::format("{} generate {} --prompt {}", command.program, shell_word(flags.model), shell_word(flags.prompt));
  const auto add = [&](const char* option, const auto& value, bool given) {
    if (given) line += fmt::format(" {} {}", option, value);
  };
  add("--tokens", flags.tokens.value_or(0), flags.tokens.has_value());
  add("--temperature", s.temperature, s.temperature != standard.temperature);
  add("--top-k", s.top_k, s.top_k != standard.top_k);
  add("--top-p", s.top_p, s.top_p != standard.top_p);
  add("--stop", shell_word(flags.stop), !flags.stop.empty());
  add("--seed", flags.seed.value_or(0), flags.seed.has_value());
  return line + " --show-attention";
}

/// What the model reads before it speaks, and how much it is asked to say.
struct Beginning {
  std::vector<std::int32_t> source, ids;
  std::int64_t count = 0;
};

Beginning beginning_of(const Session& session, const GenerateFlags& flags) {
  const Task& task = *session.task;
  constexpr std::int64_t kCharacters = 200;  // of a text, unless told
  if (task.continues())
    return {{}, encode_text(session.vocabulary(), flags.prompt), flags.tokens.value_or(kCharacters)};
  const Prompt prompt = read_prompt(task, flags.prompt);
  Example example{prompt.source, {}, {}};
  task.answer(example);  // refuses a source of another length or kind than those it was trained on
  Beginning begin;
  begin.count = flags.tokens ? *flags.tokens : answers_from(task, prompt.target.size());
  if (begin.count == 0 && prompt.target.size() >= example.target.size())
    throw ConfigError(error_line("generate", "the prompt holds the whole answer of " + task.name(), {},
                                 "end the prompt earlier, or give --tokens"));
  if (begin.count == 0)
    throw ConfigError(error_line("generate", "after this prompt " + task.name() + " asks and does not answer", {},
                                 "end the prompt with a question, or give --tokens"));
  (session.layout() == Layout::split ? begin.source : begin.ids) = prompt.source;
  begin.ids.push_back(task.separator());
  begin.ids.insert(begin.ids.end(), prompt.target.begin(), prompt.target.end());
  return begin;
}

void run_generate(const GenerateFlags& flags, Command& command) {
  const Session session = Session::open(flags.model);
  if (session.layout() == Layout::aligned)
    throw ConfigError(error_line("generate", session.path + " is an encoder, which continues nothing", {},
                                 "tapehead inspect shows what it does with an input"));
  auto [source, ids, count] = beginning_of(session, flags);
  Sampling sampling = flags.sampling;
  if (flags.seed) sampling.seed = static_cast<std::uint64_t>(*flags.seed);
  if (!flags.stop.empty()) sampling.stop = session.vocabulary().id(flags.stop);
  set_threads(flags.threads);
  const Generated said = generate(*session.model, ids, source, count, sampling);
  command.start();
  const std::string text = session.task->continues() ? decode_text(session.vocabulary(), said.tokens)
                                                     : session.vocabulary().decode(said.tokens);
  command.say((isatty(STDOUT_FILENO) ? harmless(text) : text) + "\n");
  if (said.forgotten > 0)
    command.say(fmt::format("the context holds {}: at the end the first {} were out of sight\n",
                            counted(session.model->config.context, "token"), said.forgotten));
  if (flags.show_attention) {
    ids.insert(ids.end(), said.tokens.begin(), said.tokens.end() - 1);  // the last one was never read
    command.say("\n" + drawn(session, source, ids, remake_command(flags, command)));
  }
  command.answer({{"prompt", flags.prompt}, {"text", text}, {"forgotten", said.forgotten}});
}

}  // namespace

void add_generate(Options& options, Command& command) {
  auto flags = std::make_shared<GenerateFlags>();
  options.add("model", flags->model, "a run folder or a checkpoint").required().type("RUN|CKPT");
  options.add("--prompt", flags->prompt, "tokens: 'source', or 'source | target so far'").required();
  options.add("--tokens", flags->tokens, "how many; as many as the task answers if not given").range(1, 100'000);
  options.add("--temperature", flags->sampling.temperature, "0: the most likely token; above: drawn");
  options.add("--top-k", flags->sampling.top_k, "only among the k most likely; 0: all").range(0, 1 << 30);
  options.add("--top-p", flags->sampling.top_p, "only among the fewest that hold this share");
  options.add("--stop", flags->stop, "end after this token").type("TOKEN");
  options.flag("--show-attention", flags->show_attention, "draw every head over prompt and answer");
  add_seed(options, flags->seed, "of what is drawn; 1 unless given");
  add_threads(options, flags->threads);
  options.run([flags, &command] { run_generate(*flags, command); });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
