// What a model is, as plain data: the [model] table of a config file.
#pragma once

#include <cstdint>
#include <string>

namespace tapehead {

enum class ModelKind { decoder, encoder, encoder_decoder };
enum class PositionKind { learned, sinusoidal, none };
enum class NormOrder { pre, post };
enum class ActivationKind { relu, gelu, silu };

struct ModelConfig {
  ModelKind kind = ModelKind::decoder;
  std::int64_t layers = 2;        // of the encoder and of the decoder each
  std::int64_t width = 64;        // C
  std::int64_t heads = 4;         // H; width is a multiple
  std::int64_t feed_forward = 0;  // F; 0: 4 C
  std::int64_t context = 0;       // longest sequence; 0: what the task needs
  std::int64_t vocabulary = 0;    // V; the task's or the data's, never set by hand
  double dropout = 0;
  bool tie_embeddings = true;  // the output head is the token table
  bool bias = true;            // in linear layers and norms
  PositionKind positions = PositionKind::learned;
  NormOrder norm_order = NormOrder::pre;
  ActivationKind activation = ActivationKind::gelu;
  double temperature = 1;  // divides attention scores
  double init_std = 0.02;  // of the normal that linear and embedding weights are drawn from

  std::int64_t feed_forward_width() const { return feed_forward ? feed_forward : 4 * width; }
  bool operator==(const ModelConfig&) const = default;
};

}  // namespace tapehead
