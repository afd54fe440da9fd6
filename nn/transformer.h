// The three models of one config: decoder-only (GPT), encoder-only (BERT without its head), encoder-decoder (the
// original transformer, Vaswani et al. 2017, figure 1).
#pragma once

#include "nn/block.h"
#include "nn/embedding.h"
#include "nn/positions.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// What a model keeps of one sequence so that each new token costs one position's work.
struct Past {
  struct Layer {
    KeyValues self, cross;
  };
  std::vector<Layer> layers;
  Index length = 0;  // tokens so far
};

/// Positions, blocks and, with pre-norm, a last norm: the residual path of one sequence.
struct Stack {
  Positions positions;
  std::vector<Block> blocks;
  std::optional<Norm> norm;
  Real dropout = 0;

  static Stack make(Initialiser& init, const ModelConfig& config, bool cross);
  /// x [B, T, C] -> the same; with `past` they are the tokens after those that it knows.
  Tensor operator()(Tensor x, const Mask& mask, Tensor memory = {}, Past* past = nullptr) const;
  template <class V>
  void visit(V& v) const {
    v("positions", positions);
    v("blocks", blocks);
    v("norm", norm);
  }
};

struct Transformer {
  Embedding tokens;
  std::optional<Stack> encoder;  // encoder-decoder only: reads the source
  Stack stack;                   // the decoder; of an encoder-only model, its encoder
  std::optional<Linear> head;    // none: tied to the token table
  bool causal = true;

  static Transformer make(Initialiser& init, const ModelConfig& config);
  /// inputs [B, T] (and source [B, S] for an encoder-decoder) -> logits [B, T, V].
  /// With `past` (one sequence, a decoder) inputs are the tokens after those that it knows, and the source is encoded
  /// with the first of them alone. Throws ShapeError when a source is given to a model without encoder, or missing.
  Tensor operator()(Ids inputs, Ids source = {}, Past* past = nullptr) const;
  template <class V>
  void visit(V& v) const {
    v("tokens", tokens);
    v("encoder", encoder);
    stack.visit(v);
    v("head", head);
  }
};

/// A transformer with its numbers. Copying it clones it: handles are offsets, so they hold for the copy.
struct Model {
  ModelConfig config;
  ParameterSet parameters;
  Transformer net;

  /// Initial values are a function of (config, seed) alone.
  explicit Model(ModelConfig config, std::uint64_t seed);
};

/// A table of modules, shapes and unique parameter counts, for a person to read.
std::string summary(const Model& model);

}  // namespace tapehead::inline TAPEHEAD_REAL
