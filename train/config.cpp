#include "train/config.h"

#include <algorithm>

#include "autograd/error.h"
#include "train/config_keys.h"

namespace tapehead {

namespace {

/// What a task needs other than the general defaults: settings as for --set.
struct Recipe {
  std::string task;
  std::vector<std::string> settings;
};

const std::vector<Recipe>& recipes() {
  // Found by sweeps over seeds 1 to 10, decoder and encoder-decoder alike. Small first weights make a head look where
  // the rule says: larger ones learn the task as fast, with blurred attention.
  static const std::vector<Recipe> all = {
      {"copy",
       {"model.layers=1", "model.heads=2", "model.tie_embeddings=false", "model.init_std=0.04",
        "train.learning_rate=0.003", "train.warmup=50"}},
      // nanoGPT's for a CPU.
      {kTextTask,
       {"model.layers=4", "model.width=128", "model.bias=false", "train.batch=12", "train.learning_rate=0.001",
        "train.min_learning_rate=0.0001", "train.warmup=100", "train.steps=2000", "train.weight_decay=0.1",
        "train.eval_every=250"}},
      {"lookup",
       {"model.layers=1", "model.heads=1", "model.init_std=0.05", "train.learning_rate=0.002", "train.warmup=100"}}};
  return all;
}

}  // namespace

Config Config::defaults(const std::string& task) {
  Config config;
  config.task = task;
  config.data = make_task(task)->knobs();
  for (const Recipe& recipe : recipes())
    if (recipe.task == task)
      for (const std::string& setting : recipe.settings) config.set(setting);
  return config;
}

void Config::set(const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos)
    throw ConfigError(error_line("config", "expected key=value, not " + in_quotes(assignment)));
  const std::string name = assignment.substr(0, equals), value = assignment.substr(equals + 1);
  Config draft = *this;
  if (const auto layer = layer_of_key(name)) add_layer(draft, *layer);
  const std::vector<ConfigKey> keys = config_keys(draft);
  const ConfigKey* key = find_key(keys, name);
  if (!key) throw ConfigError(error_line("config", unknown_key(keys, name)));
  const std::string problem = key->assign_text(value);
  if (!problem.empty()) throw ConfigError(error_line("config", problem));
  *this = std::move(draft);
}

namespace {

class Problems {
 public:
  void add(const std::string& fact, const std::string& hint = {}) { add_lines(error_line("config", fact, "", hint)); }
  void add_lines(const std::string& lines) { lines_ += (lines_.empty() ? "" : "\n") + lines; }
  void throw_if_any() const {
    if (!lines_.empty()) throw ConfigError(lines_);
  }

 private:
  std::string lines_;
};

// `name` of a layer with settings of its own is "model.layer.2.", of all others "model.".
void check_layer(const ModelConfig& model, const LayerConfig& layer, const std::string& name, Problems& problems) {
  const std::string width = "model.width " + std::to_string(model.width);
  const auto said = [&](const char* leaf, std::int64_t value) { return name + leaf + ' ' + std::to_string(value); };
  const std::string heads = said("heads", layer.heads);
  if (model.width < 1 || layer.heads < 1) return;  // reported as out of range
  if (layer.key_width == 0 && layer.heads > model.width)
    problems.add(heads + " is more than " + width, "a head needs at least one channel");
  else if (layer.key_width == 0)
    problems.add(width + " is not divisible by " + heads, "heads share the width equally");
  if (layer.kv_heads > 0 && layer.heads % layer.kv_heads != 0)
    problems.add(heads + " is not divisible by " + said("kv_heads", layer.kv_heads),
                 "each head of keys and values serves as many heads");
  if (layer.scoring == ScoringKind::cosine && layer.scale != 0)
    problems.add(
        name + "scale is " + number_text(layer.scale) + " and " + name + "scoring is cosine, which learns its scale",
        "leave out one of them");
  if (layer.scoring == ScoringKind::additive && model.positions == PositionKind::rope)
    problems.add(name + "scoring is additive and model.positions is rope, which turns dot products",
                 "choose other positions");
  const bool rotates = static_cast<std::int64_t>(model.rope_fraction * static_cast<double>(layer.key_width)) >= 2;
  if (model.positions == PositionKind::rope && !rotates && layer.key_width > 0)
    problems.add("model.rope_fraction " + number_text(model.rope_fraction) + " of " +
                     said("key_width", layer.key_width) + " leaves no pair of channels to turn",
                 "raise one of them");
}

// Matrices that are one have one shape.
void check_shares(const ModelConfig& model, const LayerConfig& l, Problems& problems) {
  const auto need = [&](const char* what, bool holds, const char* fact,
                        const char* hint = "shared matrices have the same shape") {
    if (model.shares(what) && !holds) problems.add(std::string("model.share holds ") + what + ", but " + fact, hint);
  };
  const bool all_heads = l.kv_heads == l.heads, square = l.heads * l.value_width == model.width;
  need("q=k", all_heads || model.shares("heads"), "kv_heads is not heads");
  need("k=aq", all_heads || model.shares("heads"), "kv_heads is not heads");
  need("k=v", l.key_width == l.value_width, "key_width is not value_width");
  need("v=o", all_heads && square, "heads x value_width is not the width, or kv_heads not heads");
  need("o=qT", l.key_width == l.value_width, "key_width is not value_width");
  need("k=aq", !model.shares("q=k"), "q=k is there as well", "W_K can be made of W_Q in one way");
  need("o=qT", !model.shares("v=o"), "v=o is there as well", "W_O can be one other matrix");
  const LayerConfig first = model.layer(0);
  need("layers",
       l.heads == first.heads && l.kv_heads == first.kv_heads && l.key_width == first.key_width &&
           l.value_width == first.value_width && l.rank == first.rank && l.scoring == first.scoring,
       "a layer's heads, widths, rank or scoring differ from the first one's");
}

void check_model(const ModelConfig& model, Problems& problems) {
  const auto overrides = [&](std::int64_t layer) {
    return std::ranges::any_of(model.overrides, [&](const LayerOverride& o) { return o.layer == layer; });
  };
  // One fault of many like layers is one line. A number of layers out of range is reported already.
  std::vector<LayerConfig> checked;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(model.layers, 256); ++i) {
    const LayerConfig layer = model.layer(i);
    if (std::ranges::find(checked, layer) != checked.end()) continue;
    checked.push_back(layer);
    check_layer(model, layer, overrides(i) ? "model.layer." + std::to_string(i) + '.' : "model.", problems);
    check_shares(model, layer, problems);
  }
  for (const LayerOverride& o : model.overrides)
    if (o.layer >= model.layers)
      problems.add(
          "model.layer." + std::to_string(o.layer) + " is set, but model.layers is " + std::to_string(model.layers),
          "layers count from 0");
}

void check_task(const Config& config, Problems& problems) {
  std::unique_ptr<Task> task;
  try {
    task = make_task(config.task, config.data);
  } catch (const ConfigError& error) {
    problems.add_lines(error.what());
    return;
  }
  const Layout layout = layout_of(config.model.kind);
  if (layout == Layout::aligned && !task->aligned() && !task->continues())
    problems.add("model.kind is encoder, which cannot learn " + config.task +
                     ": its source does not decide a target token for each of its own",
                 "set model.kind to decoder or encoder-decoder");
  if (task->continues() && layout != Layout::joined)
    problems.add("model.kind is " + name_of(config.model.kind) + ", only a decoder learns " + config.task);
  const std::int64_t needed = longest_sequence(*task, layout);
  if (config.model.context > 0 && config.model.context < needed)
    problems.add("model.context " + std::to_string(config.model.context) + " is too short for " + config.task +
                     ", which needs " + std::to_string(needed),
                 "0 takes what the task needs");
}

}  // namespace

void Config::check() const {
  Problems problems;
  Config copy = *this;  // keys point into a config that may be written to
  copy.data.clear();    // the task checks its own
  for (const ConfigKey& key : config_keys(copy))
    if (const std::string problem = key.problem(); !problem.empty()) problems.add(problem);
  check_model(model, problems);
  if (train.min_learning_rate > train.learning_rate)
    problems.add("train.min_learning_rate " + number_text(train.min_learning_rate) + " is above train.learning_rate " +
                 number_text(train.learning_rate));
  check_task(*this, problems);
  problems.throw_if_any();
}

ModelConfig Config::model_for(const Task& of) const {
  ModelConfig complete = model;
  if (of.vocabulary().size() > 0) complete.vocabulary = of.vocabulary().size();  // else that of the checkpoint
  if (complete.context == 0) complete.context = longest_sequence(of, layout_of(model.kind));
  return complete;
}

Layout layout_of(ModelKind kind) {
  switch (kind) {
    case ModelKind::decoder:
      return Layout::joined;
    case ModelKind::encoder:
      return Layout::aligned;
    case ModelKind::encoder_decoder:
      break;
  }
  return Layout::split;
}

}  // namespace tapehead
