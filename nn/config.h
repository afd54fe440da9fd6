// What a model is, as plain data: the [model] table of a config file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tapehead {

enum class ModelKind { decoder, encoder, encoder_decoder };
enum class PositionKind { learned, sinusoidal, rope, alibi, none };
enum class NormKind { layer, rms, none };
enum class NormOrder { pre, post };
enum class ActivationKind { relu, gelu, silu, swiglu };
enum class ScoringKind { dot, additive, cosine };

/// What one layer is.
struct LayerConfig {
  std::int64_t heads = 4;         // H
  std::int64_t kv_heads = 0;      // of keys and values, a divisor of H; 0: H
  std::int64_t key_width = 0;     // D of a head's queries and keys; 0: C / H
  std::int64_t value_width = 0;   // of a head's values; 0: D
  std::int64_t feed_forward = 0;  // F; 0: 4 C; -1: attention alone
  ActivationKind activation = ActivationKind::gelu;
  ScoringKind scoring = ScoringKind::dot;
  double scale = 0;         // multiplies attention scores; 0: 1 / sqrt(D), of additive and cosine ones 1
  double temperature = 1;   // divides them
  double softcap = 0;       // scores stay within -softcap .. softcap; 0: no cap
  std::int64_t window = 0;  // positions that self-attention reaches; 0: all
  std::int64_t rank = 0;    // of the projections; 0: full
  bool operator==(const LayerConfig&) const = default;
};

/// Where one layer differs from the others: [model.layer.N].
struct LayerOverride {
  std::int64_t layer = 0;
  std::optional<std::int64_t> heads, kv_heads, key_width, value_width, feed_forward, window, rank;
  std::optional<ActivationKind> activation;
  std::optional<ScoringKind> scoring;
  std::optional<double> scale, temperature, softcap;
  bool operator==(const LayerOverride&) const = default;
};

struct ModelConfig : LayerConfig {
  ModelKind kind = ModelKind::decoder;
  std::int64_t layers = 2;      // of the encoder and of the decoder each
  std::int64_t width = 64;      // C
  std::int64_t context = 0;     // longest sequence; 0: what the task needs
  std::int64_t vocabulary = 0;  // V; the task's or the data's, never set by hand
  double dropout = 0;
  bool tie_embeddings = true;  // the output head is the token table
  bool bias = true;            // in linear layers and norms
  PositionKind positions = PositionKind::learned;
  double rope_base = 10000;
  double rope_fraction = 1;  // of a head's channels that are rotated
  NormKind norm = NormKind::layer;
  NormOrder norm_order = NormOrder::pre;
  std::vector<std::string> share;  // of kShares
  double init_std = 0.02;          // of the normal that linear and embedding weights are drawn from
  std::vector<LayerOverride> overrides;

  bool operator==(const ModelConfig&) const = default;
  bool shares(const char* what) const { return std::find(share.begin(), share.end(), what) != share.end(); }

  /// Layer i with its overrides, and with every width that follows from others filled in.
  LayerConfig layer(std::int64_t i) const {
    LayerConfig c = *this;
    for (const LayerOverride& o : overrides) {
      if (o.layer != i) continue;
      c.heads = o.heads.value_or(c.heads);
      c.kv_heads = o.kv_heads.value_or(c.kv_heads);
      c.key_width = o.key_width.value_or(c.key_width);
      c.value_width = o.value_width.value_or(c.value_width);
      c.feed_forward = o.feed_forward.value_or(c.feed_forward);
      c.window = o.window.value_or(c.window);
      c.rank = o.rank.value_or(c.rank);
      c.activation = o.activation.value_or(c.activation);
      c.scoring = o.scoring.value_or(c.scoring);
      c.scale = o.scale.value_or(c.scale);
      c.temperature = o.temperature.value_or(c.temperature);
      c.softcap = o.softcap.value_or(c.softcap);
    }
    if (c.kv_heads == 0) c.kv_heads = c.heads;
    if (c.key_width == 0 && c.heads > 0 && width % c.heads == 0) c.key_width = width / c.heads;  // else refused
    if (c.value_width == 0) c.value_width = c.key_width;
    if (c.feed_forward == 0) c.feed_forward = 4 * width;
    return c;
  }
};

/// What model.share may list: W_K is W_Q; W_V is W_K; W_O is W_V; W_O is the transpose of W_Q; W_K is W_Q times a
/// learned number; one matrix for all heads; all layers attend with the first one's matrices.
inline constexpr const char* kShares[] = {"q=k", "k=v", "v=o", "o=qT", "k=aq", "heads", "layers"};

}  // namespace tapehead
