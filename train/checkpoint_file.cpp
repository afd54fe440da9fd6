#include "train/checkpoint_file.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "autograd/error.h"
#include "train/archive.h"
#include "train/envelope.h"

namespace tapehead {

namespace {

constexpr Envelope kCheckpointFile{"checkpoint", "TAPEHEAD", 1};

// --- the payload, field by field; checkpoints/README.md shows the same as a table

template <class Archive>
void transfer_tensor(Archive& a, typename Archive::template Ref<StoredTensor> tensor) {
  a.text("name", tensor.name);
  a.numbers("shape", tensor.shape);
  a.numbers("bytes", tensor.bytes);
}

template <class Archive>
void transfer_tensors(Archive& a, const char* field, typename Archive::template Ref<std::vector<StoredTensor>> list) {
  a.list(field, list, [](Archive& each, auto& tensor) { transfer_tensor(each, tensor); });
}

template <class Archive>
void transfer_training(Archive& a, typename Archive::template Ref<TrainingState> training) {
  a.number("training.step", training.step);
  a.number("training.best_step", training.best_step);
  a.number("training.best_metric", training.best_metric);
  a.number("training.best_token_accuracy", training.best_token_accuracy);
  a.number("training.best_loss", training.best_loss);
  transfer_tensors(a, "training.moments", training.moments);
}

template <class Archive>
void transfer_model(Archive& a, typename Archive::template Ref<CheckpointFile> file) {
  a.list("vocabulary", file.vocabulary, [](Archive& each, auto& token) { each.text("token", token); });
  a.number("width", file.width);
  a.number("step", file.step);
  a.number("loss", file.loss);
  a.number("exact_match", file.exact_match);
  a.number("token_accuracy", file.token_accuracy);
  transfer_tensors(a, "parameters", file.parameters);
}

// --- what the fields must be

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

// What is wrong with the tensors, or "".
std::string fault(const std::vector<StoredTensor>& tensors, std::uint8_t width) {
  std::unordered_set<std::string> names;
  for (const StoredTensor& tensor : tensors) {
    const std::string name = in_quotes(tensor.name);
    if (tensor.name.empty() || !names.insert(tensor.name).second) return name + " is nameless or there twice";
    if (tensor.shape.size() > 8) return name + " has " + std::to_string(tensor.shape.size()) + " axes";
    std::uint64_t bytes = width;
    for (const std::int64_t size : tensor.shape) {
      // Compared before it is multiplied: 2^32 x 2^32 must not come out as 0.
      if (size < 1 || bytes > std::numeric_limits<std::int64_t>::max() / static_cast<std::uint64_t>(size))
        return name + " has the impossible shape " + shape_text(tensor.shape);
      bytes *= static_cast<std::uint64_t>(size);
    }
    if (bytes != tensor.bytes.size())
      return name + " of shape " + shape_text(tensor.shape) + " has " + std::to_string(tensor.bytes.size()) +
             " bytes, expected " + std::to_string(bytes);
  }
  return "";
}

bool is_share(double value) { return !(value < 0 || value > 1); }  // NaN: not evaluated

// Of a vocabulary that is the file's own.
std::string fault(const std::vector<std::string>& vocabulary) {
  if (vocabulary.empty()) return "the vocabulary is empty";
  try {
    Vocabulary checked(vocabulary);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string fault(const CheckpointFile& file) {
  const std::unique_ptr<Task> task = make_task(file.config.task, file.config.data);
  if (task->continues()) {
    if (std::string wrong = fault(file.vocabulary); !wrong.empty()) return wrong;
  } else if (file.vocabulary != task->vocabulary().tokens()) {
    return "vocabulary of " + std::to_string(file.vocabulary.size()) + " tokens is not that of " + file.config.task +
           ", which has " + std::to_string(task->vocabulary().size());
  }
  const std::int64_t size = file.config.model.vocabulary;
  if (size != 0 && size != static_cast<std::int64_t>(file.vocabulary.size()))
    return "model.vocabulary is " + std::to_string(size) + ", the vocabulary has " +
           std::to_string(file.vocabulary.size()) + " tokens";
  if (file.width != 4 && file.width != 8) return "width is " + std::to_string(file.width) + ", expected 4 or 8";
  if (!is_share(file.exact_match) || !is_share(file.token_accuracy)) return "exact_match is outside [0, 1]";
  const auto steps = static_cast<std::uint64_t>(file.config.train.steps);
  if (file.step > steps) return "step " + std::to_string(file.step) + " is beyond train.steps " + std::to_string(steps);
  if (std::string wrong = fault(file.parameters, file.width); !wrong.empty()) return "parameter " + wrong;
  if (!file.training) return "";
  const TrainingState& training = *file.training;
  if (training.step > steps || training.best_step > training.step)
    return "training.step " + std::to_string(training.step) + " is beyond train.steps or before training.best_step";
  if (!is_share(training.best_metric) || !is_share(training.best_token_accuracy))
    return "training.best_metric is outside [0, 1]";
  const std::string wrong = fault(training.moments, file.width);
  return wrong.empty() ? "" : "moment " + wrong;
}

}  // namespace

void CheckpointFile::save(const std::string& path) const {
  config.check();
  if (const std::string wrong = fault(*this); !wrong.empty())
    throw FileError(error_line("checkpoint", "cannot save " + path + ": " + wrong));
  FieldWriter writer;
  writer.text("config", config.to_toml());
  transfer_model(writer, *this);
  writer.number("has_training", static_cast<std::uint8_t>(training.has_value()));
  if (training) transfer_training(writer, *training);
  save_payload(path, kCheckpointFile, std::move(writer).take());
}

CheckpointFile CheckpointFile::load(const std::string& path) {
  const std::string payload = load_payload(path, kCheckpointFile);
  FieldReader reader(payload, "checkpoint", path);
  CheckpointFile file;
  std::string toml;
  std::uint8_t has_training = 0;
  reader.text("config", toml);
  transfer_model(reader, file);
  reader.number("has_training", has_training);
  if (has_training > 1) reader.fail("has_training", "is neither 0 nor 1");
  if (has_training) transfer_training(reader, file.training.emplace());
  reader.require_end();
  try {
    file.config.parse_toml(toml, "config");
    file.config.check();
  } catch (const ConfigError& error) {
    std::string lines = error.what();
    std::replace(lines.begin(), lines.end(), '\n', ' ');
    reader.fail("config", "is refused: " + lines);
  }
  if (const std::string wrong = fault(file); !wrong.empty())
    reader.fail("its contents", "do not hold together: " + wrong);
  file.config.model.vocabulary = static_cast<std::int64_t>(file.vocabulary.size());
  return file;
}

std::string differences(const std::vector<NamedShape>& expected, const std::vector<StoredTensor>& found) {
  std::unordered_map<std::string, const StoredTensor*> by_name;
  for (const StoredTensor& tensor : found) by_name[tensor.name] = &tensor;
  std::string missing, misshapen, unexpected;
  const auto add = [](std::string& list, const char* head, const std::string& item) {
    list += (list.empty() ? head : ", ") + item;
  };
  for (const NamedShape& wanted : expected) {
    const auto at = by_name.find(wanted.name);
    if (at == by_name.end()) {
      add(missing, "missing ", wanted.name);
      continue;
    }
    const std::vector<std::int64_t>& shape = at->second->shape;
    if (shape != wanted.shape)
      misshapen += (misshapen.empty() ? "" : "; ") + wanted.name + " is " + shape_text(shape) + ", expected " +
                   shape_text(wanted.shape);
    by_name.erase(at);
  }
  for (const StoredTensor& tensor : found)  // in the file's order, not the map's
    if (by_name.contains(tensor.name)) add(unexpected, "unexpected ", tensor.name);
  std::string all;
  for (const std::string& part : {missing, unexpected, misshapen})
    if (!part.empty()) all += (all.empty() ? "" : "; ") + part;
  return all;
}

}  // namespace tapehead
