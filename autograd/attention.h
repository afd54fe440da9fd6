// Attention: a weighted mixture of values, with weights from queries and keys.
//
//   attention(q, k, v) = softmax(q k^T * scale / temperature) v      (Vaswani et al. 2017, eq. 1)
//
// q [..., T, D], k [..., S, D], v [..., S, Dv] -> [..., T, Dv]; leading axes broadcast, T != S and Dv != D are
// ordinary.
#pragma once

#include <optional>

#include "autograd/mask.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct Attention {
  Mask mask = {};
  std::optional<Real> scale = {};  // 1 / sqrt(D) unless given
  Real temperature = 1;            // > 0; divides the scores: lower sharpens, higher flattens
  bool keep_weights = false;  // also fill the node "attention.weights" [..., T, S], without changing any other result
};

/// Throws ShapeError for widths or lengths that differ, for a query that may see no source (named, before any
/// arithmetic), and for T > S with a causal mask. A masked source has weight exactly 0.
/// Sources that no query may see are never read. The same happens when the tape's keep_weights is set.
Tensor attention(Tensor q, Tensor k, Tensor v, const Attention& options = {});

namespace composed {
/// The same function made of matmul, masked_fill and softmax.
Tensor attention(Tensor q, Tensor k, Tensor v, const Attention& options = {});
}  // namespace composed

}  // namespace tapehead::inline TAPEHEAD_REAL
