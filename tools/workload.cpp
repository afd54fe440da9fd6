#include "tools/workload.h"

#include <algorithm>

#include "autograd/error.h"

namespace tapehead {

namespace {

ModelConfig decoder(std::int64_t layers, std::int64_t width, std::int64_t heads, std::int64_t vocabulary, bool bias) {
  ModelConfig m;
  m.layers = layers;
  m.width = width;
  m.heads = heads;
  m.vocabulary = vocabulary;
  m.bias = bias;
  return m;
}

std::vector<Workload> workloads() {
  std::vector<Workload> all = {
      {"W0", "decoder, 1 layer, width 32", decoder(1, 32, 2, 16, true), 16, 16, 3000},
      {"W1", "decoder, 2 layers, width 64", decoder(2, 64, 4, 16, true), 32, 32, 300},
      {"W2", "nanoGPT's recipe for a CPU: 4 layers, width 128", decoder(4, 128, 4, 65, false), 12, 64, 60},
      {"W3", "nanoGPT's shakespeare_char: 6 layers, width 384", decoder(6, 384, 6, 65, false), 8, 256, 7},
      {"W4", "causal attention alone, 8 heads of 64", decoder(1, 512, 8, 1, false), 1, 1024, 20},
      {"W5", "GPT-2, 124M parameters", decoder(12, 768, 12, 50257, true), 4, 64, 5},
      {"W6", "encoder-decoder copy, 2 + 2 layers, width 64", decoder(2, 64, 4, 16, true), 32, 32, 200},
  };
  all.back().model.kind = ModelKind::encoder_decoder;
  return all;
}

double attention_operations(const ModelConfig& m, std::int64_t sequences, std::int64_t length, bool causal) {
  const auto T = static_cast<double>(length);
  return 4.0 * static_cast<double>(sequences * m.width) * (causal ? T * (T + 1) / 2 : T * T);  // q k^T and weights v
}

}  // namespace

Workload find_workload(const std::string& name) {
  for (const Workload& w : workloads())
    if (w.name == name) return w;
  throw ConfigError(error_line("bench", "unknown workload " + in_quotes(name), {}, "they are W0 to W6"));
}

std::int64_t Workload::tokens() const { return batch * length * (model.kind == ModelKind::encoder_decoder ? 2 : 1); }

double Workload::operations() const {
  const bool crosses = model.kind == ModelKind::encoder_decoder;
  const auto C = static_cast<double>(model.width), F = static_cast<double>(model.layer(0).feed_forward);
  const double self = attention_operations(model, batch, length, true);
  if (attention_alone()) return 3 * self;
  const auto rows = static_cast<double>(batch * length), layers = static_cast<double>(model.layers);
  const double block = 2 * rows * (4 * C * C + 2 * C * F);
  double forward = layers * (block + self) + 2 * rows * C * static_cast<double>(model.vocabulary);
  if (crosses)  // an encoder's block, and four more projections in the decoder's
    forward += layers * (block + 2 * attention_operations(model, batch, length, false) + 2 * rows * 4 * C * C);
  return 3 * forward;
}

TrainConfig workload_training() {
  TrainConfig train;
  train.steps = 1'000'000'000;
  train.learning_rate = train.min_learning_rate = 1e-3;
  train.warmup = 0;
  return train;
}

Batch workload_batch(const Workload& workload, std::uint64_t seed, std::uint32_t index) {
  rng::Generator random(rng::Stream(seed, rng::Purpose::training_data, index));
  const auto count = static_cast<std::size_t>(workload.batch * workload.length);
  const auto classes = static_cast<std::uint32_t>(workload.model.vocabulary);
  const bool copies = workload.model.kind == ModelKind::encoder_decoder;
  std::vector<std::int32_t> tokens(count + 1);
  // The last token of a copy's vocabulary is the separator, which starts every target.
  for (std::int32_t& t : tokens) t = static_cast<std::int32_t>(random.below(copies ? classes - 1 : classes));
  Batch batch;
  batch.sequences = workload.batch;
  batch.target_length = workload.length;
  batch.counted = static_cast<std::int64_t>(count);
  batch.inputs.assign(tokens.begin(), tokens.end() - 1);
  if (!copies) {
    batch.targets.assign(tokens.begin() + 1, tokens.end());
    return batch;
  }
  batch.source_length = workload.length;
  batch.source = batch.targets = batch.inputs;
  for (std::size_t i = 0; i < count; ++i)
    batch.inputs[i] =
        i % static_cast<std::size_t>(workload.length) == 0 ? workload.model.vocabulary - 1 : tokens[i - 1];
  return batch;
}

}  // namespace tapehead
