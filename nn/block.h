// One layer of a transformer: self-attention, cross-attention when it decodes from an encoder, feed-forward; each in a
// residual branch with its norm.
//
//   pre:  x = x + f(norm(x))   (Xiong et al. 2020; GPT-2)        post: x = norm(x + f(x))   (Vaswani et al. 2017)
#pragma once

#include <optional>

#include "nn/attention.h"
#include "nn/feed_forward.h"
#include "nn/norm.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct Block {
  LayerNorm norm1;
  MultiHeadAttention attn;
  LayerNorm norm2;
  std::optional<MultiHeadAttention> cross;
  std::optional<LayerNorm> norm3;
  FeedForward mlp;
  NormOrder order = NormOrder::pre;
  Real dropout = 0;

  /// `cross`: with attention to an encoder's output.
  static Block make(Initialiser& init, const ModelConfig& config, bool cross);
  /// x [B, T, C], memory [B, S, C] when the block has cross-attention -> [B, T, C]
  Tensor operator()(Tensor x, const Mask& mask, Tensor memory = {}) const;

  template <class V>
  void visit(V& v) const {
    v("norm1", norm1);
    v("attn", attn);
    v("norm2", norm2);
    v("cross", cross);
    v("norm3", norm3);
    v("mlp", mlp);
  }
};

}  // namespace tapehead::inline TAPEHEAD_REAL
