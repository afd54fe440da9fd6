// The passes of fused attention: scores, weights and their gradients, a panel of queries at a time.
#pragma once

#include <optional>

#include "autograd/kernels/batches.h"
#include "autograd/kernels/keep.h"
#include "autograd/mask.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// A panel has so many queries, and is worked on so many sources at a time.
constexpr Index kPanelRows = 64, kPanelColumns = 256;

/// One call of attention() as the kernel sees it; lies in the arena, shared by forward and backward.
///
///   score = softcap(factor q . k) + bias - slope |t + S - T - s|      or, additive:  q . k -> vector . tanh(q + k)
///   W = softmax(score) over the sources a query may see,   y = dropout(W) v
struct AttentionProblem {
  Tensor q, k, v, y;
  Tensor softmax;       // [..., T, 2]: each row's largest score and 1 / sum exp(score - largest)
  Tensor bias, vector;  // [..., T, S] and [..., 1, D], or empty
  Tensor weights;       // [..., T, S], there when asked for: takes dL/dW
  Batches in_q, in_k, in_v, in_y, in_bias, in_vector;
  Index count, T, S, D, Dv;  // count: matrices in the leading axes
  Real factor, softcap;      // softcap 0: none
  const Real* slopes;        // one a head, the last leading axis; or nullptr
  Index heads;
  std::optional<Keep> keep;  // dropout of weights
  Index first_item;          // of this shard within the whole batch, for dropout
  VisibleSources visible;
  Real* kept;  // weights [count, T, S] for backward when they are one panel, else nullptr

  /// Where one source's row or another begins in `weights`, `kept` and the like.
  Index row(Index item, Index t) const { return item * T + t; }
};

void attention_forward(const AttentionProblem& p, Tape& tape);
/// Adds to the gradients of q, k, v, bias and vector, and fills that of `weights`.
void attention_backward(const AttentionProblem& p, Tape& tape);
/// Weights and scores [..., T, S] once more, from what forward saved: -infinity and 0 where masked.
void attention_weights(const AttentionProblem& p, Tape& tape, Real* weights, Real* scores);

}  // namespace tapehead::inline TAPEHEAD_REAL
