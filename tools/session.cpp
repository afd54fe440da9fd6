#include "tools/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/error.h"
#include "data/text.h"
#include "tools/command.h"
#include "train/files.h"
#include "train/run_folder.h"

namespace tapehead::inline TAPEHEAD_REAL {

Session Session::open(const std::string& run_or_checkpoint, const std::string& text) {
  Session s;
  s.path = checkpoint_of(run_or_checkpoint);
  s.file = CheckpointFile::load(s.path);
  s.task = make_task(s.file.config.task, s.file.config.data);
  if (!text.empty() && !s.task->continues())
    throw ConfigError(error_line("text", s.path + " is a model of " + s.task->name() + ", which reads no text", {},
                                 "leave out --data"));
  if (s.task->continues()) {
    const auto vocabulary_alone = std::make_shared<Text>();
    vocabulary_alone->vocabulary = Vocabulary(s.file.vocabulary);
    s.task = make_text(s.file.config.data, text.empty() ? vocabulary_alone : Text::decode(read_file(text), text));
  }
  s.model = std::make_unique<Model>(load_model(s.file, s.file.config.model_for(*s.task), s.path));
  return s;
}

Batch Session::held_out(std::int64_t count, std::uint64_t seed) const {
  return BatchSource(*task, layout(), 1, seed).held_out(count, seed);
}

std::string Session::describe() const {
  const ModelConfig& m = model->config;
  return fmt::format("{}, {} of {} x {}, width {}, {} parameters, step {}", task->name(), name_of(m.kind),
                     counted(m.layers, "layer"), counted(m.heads, "head"), m.width,
                     grouped(parameter_count(model->net)), file.step);
}

Prompt read_prompt(const Task& task, const std::string& text) {
  const std::vector<std::int32_t> ids = task.vocabulary().encode(text);
  const auto bar = std::find(ids.begin(), ids.end(), task.separator());
  Prompt prompt{{ids.begin(), bar}, {}};
  if (bar == ids.end()) return prompt;
  prompt.target.assign(bar + 1, ids.end());
  if (std::find(bar + 1, ids.end(), task.separator()) != ids.end())
    throw ConfigError(error_line("prompt", "the separator '" + task.vocabulary()[task.separator()] + "' stands twice",
                                 {}, "write it once, between source and target"));
  return prompt;
}

namespace {

Example read_text(const Session& session, const std::string& typed) {
  Example example{encode_text(session.vocabulary(), typed), {}, {}};
  const std::size_t length = example.source.size();
  const std::int64_t context = session.model->config.context;
  if (static_cast<std::int64_t>(length) > context)
    throw ConfigError(error_line("text",
                                 fmt::format("the sequence has {}, the context holds {}",
                                             counted(static_cast<std::int64_t>(length), "character"), context),
                                 {}, "shorten it"));
  example.target.assign(example.source.begin() + 1, example.source.end());
  example.target.push_back(0);  // nobody knows what comes after the last one
  for (std::size_t m = 0; m + 1 < length; ++m) example.link.push_back(static_cast<std::int32_t>(m));
  example.link.push_back(-1);
  return example;
}

Example read_example(const Session& session, const std::string& typed) {
  const Prompt prompt = read_prompt(*session.task, typed);
  Example example{prompt.source, {}, {}};
  session.task->answer(example);
  if (!prompt.target.empty() && prompt.target != example.target) {
    example.target = prompt.target;  // the user's own target: which source it is read from is unknown
    example.link.assign(prompt.target.size(), -1);
  }
  return example;
}

}  // namespace

Batch read_sequence(const Session& session, const std::string& typed) {
  Batch batch;
  const bool text = session.task->continues();
  lay_out(*session.task, {text ? read_text(session, typed) : read_example(session, typed)}, session.layout(), batch);
  return batch;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
