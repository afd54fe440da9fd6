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
  Norm norm1;
  MultiHeadAttention attn;
  std::optional<Norm> norm2;
  std::optional<MultiHeadAttention> cross;
  std::optional<Norm> norm3;
  std::optional<FeedForward> mlp;  // none: attention alone
  NormOrder order = NormOrder::pre;
  Real dropout = 0;

  /// Layer `number` of a model; `cross`: with attention to an encoder's output; `first`: the layer whose attention
  /// matrices it shares, or nullptr.
  static Block make(Initialiser& init, const ModelConfig& config, Index number, bool cross, const Block* first);
  /// x [B, T, C], memory [B, S, C] when the block has cross-attention -> [B, T, C]. `cross_past`: the encoder's keys
  /// and values, filled at first use; then memory may be empty.
  Tensor operator()(Tensor x, const AttentionContext& context, Tensor memory = {},
                    KeyValues* cross_past = nullptr) const;

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
