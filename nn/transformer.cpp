#include "nn/transformer.h"

#include <algorithm>
#include <utility>

namespace tapehead::inline TAPEHEAD_REAL {

Stack Stack::make(Initialiser& init, const ModelConfig& config, bool cross) {
  Stack s;
  s.positions = Positions::make(init, config);
  s.blocks.reserve(static_cast<std::size_t>(config.layers));
  for (Index i = 0; i < config.layers; ++i)
    s.blocks.push_back(
        Block::make(init, config, i, cross, i > 0 && config.shares("layers") ? s.blocks.data() : nullptr));
  if (config.norm_order == NormOrder::pre) s.norm = Norm::make(init, config.norm, config.width, config.bias);
  s.dropout = static_cast<Real>(config.dropout);
  return s;
}

Tensor Stack::operator()(Tensor x, const Mask& mask, Tensor memory, Past* past) const {
  Tape& tape = x.tape();
  const Index first = past ? past->length : 0, length = x.size(-2);
  {
    Scope scope(tape, "positions");
    x = tapehead::dropout(positions(x, first), dropout);
  }
  x = tape.tap("hook_embed", x);
  if (past) past->layers.resize(blocks.size());
  Tensor rotation;
  Index rotated_width = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Index width = blocks[i].attn.options.key_width;
    if (width != rotated_width) rotation = positions.rotation(tape, first, length, width);
    rotated_width = width;
    Scope scope(tape, "blocks", static_cast<Index>(i));
    x = blocks[i](x, {mask, rotation, past ? &past->layers[i].self : nullptr}, memory,
                  past ? &past->layers[i].cross : nullptr);
  }
  if (past) past->length += length;
  if (!norm) return x;
  Scope scope(tape, "norm");
  return (*norm)(x);
}

Transformer Transformer::make(Initialiser& init, const ModelConfig& config) {
  Transformer t;
  t.tokens = Embedding::make(init, config.vocabulary, config.width, config.init_std);
  const bool encodes = config.kind == ModelKind::encoder_decoder;
  if (encodes) t.encoder = Stack::make(init, config, false);
  t.stack = Stack::make(init, config, encodes);
  if (!config.tie_embeddings) t.head = Linear::make(init, config.width, config.vocabulary, false, config.init_std);
  t.causal = config.kind != ModelKind::encoder;
  return t;
}

Tensor Transformer::operator()(Ids inputs, Ids source, Past* past) const {
  Tape& tape = inputs.tape();
  if (source.defined() != encoder.has_value())
    fail(tape, "transformer", encoder ? "the source is missing" : "a source was given to a model without encoder",
         "only an encoder-decoder reads a source");
  const auto embed = [&](Ids ids) {
    Scope scope(tape, "tokens");
    return tokens(ids);
  };
  Tensor memory;
  if (encoder && (!past || past->length == 0)) {
    const Tensor embedded = embed(source);
    Scope scope(tape, "encoder");
    memory = (*encoder)(embedded, {});
  }
  const Mask mask = causal ? Mask::causal() : Mask();
  const Tensor x = stack(embed(inputs), mask, memory, past);
  Scope scope(tape, "head");
  return head ? (*head)(x) : linear(x, tape.param(tokens.weight));
}

Model::Model(ModelConfig model_config, std::uint64_t seed) : config(std::move(model_config)) {
  Initialiser init(parameters, seed);
  net = Transformer::make(init, config);
}

std::string summary(const Model& model) {
  const std::vector<NamedParameter> all = unique_parameters(model.net);
  std::size_t widest = 4;
  for (const NamedParameter& p : all) widest = std::max(widest, p.name.size());
  const auto line = [&](const std::string& name, const std::string& shape, const std::string& count) {
    const auto pad = [](const std::string& s, std::size_t width) {
      return std::string(width - std::min(width, s.size()), ' ');
    };
    return name + pad(name, widest + 2) + shape + pad(shape, 14) + pad(count, 10) + count + '\n';
  };
  std::string text = line("name", "shape", "numbers");
  for (const NamedParameter& p : all)
    text += line(p.name, p.parameter.shape.str(), std::to_string(p.parameter.shape.numel()));
  return text + line("total", "", std::to_string(parameter_count(model.net)));
}

}  // namespace tapehead::inline TAPEHEAD_REAL
