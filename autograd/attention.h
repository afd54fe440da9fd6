// Attention: a weighted mixture of values, with weights from queries and keys.
//
//   attention(q, k, v) = softmax(q k^T * scale / temperature) v      (Vaswani et al. 2017, eq. 1)
//
// q [..., T, D], k [..., S, D], v [..., S, Dv] -> [..., T, Dv]; leading axes broadcast, T != S and Dv != D are
// ordinary. The last leading axis is that of heads: k and v may have fewer, each serving as many neighbouring heads of
// q (grouped and multi-query attention, Ainslie et al. 2023).
#pragma once

#include <optional>

#include "autograd/mask.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// What a score is:  score = cap(compare(q, k) * scale / temperature) + bias - slope * distance.
struct Attention {
  Mask mask = {};
  std::optional<Real> scale = {};  // unless given: 1 / sqrt(D) for dot products, 1 for additive scores
  Real temperature = 1;            // > 0; divides the scores: lower sharpens, higher flattens
  Real softcap = 0;                // c > 0: cap(x) = c tanh(x / c), so that scores stay within -c .. c (Gemma 2)
  Tensor vector = {};  // [..., 1, D]: additive scores, vector . tanh(q + k) (Bahdanau et al. 2015, section 3.1)
  Tensor bias = {};    // added to scores; broadcasts to [..., T, S]
  Tensor slopes = {};  // [H], constant, ALiBi: each source costs its head's slope times its distance to the query's
                       // position t + S - T (Press et al. 2022, section 3)
  Real dropout = 0;    // of weights, in training
  /// Also fill the nodes "attention.weights" and "attention.scores" [..., T, S], and in backward the gradient of the
  /// former, without changing any other result. The same happens when the tape's keep_weights is set.
  bool keep_weights = false;
};

/// Throws ShapeError for widths, lengths or leading axes that do not fit, for a query that may see no source (named,
/// before any arithmetic), and for T > S with a causal mask. A masked source has weight exactly 0.
/// Sources that no query may see are never read.
Tensor attention(Tensor q, Tensor k, Tensor v, const Attention& options = {});

namespace composed {
/// The same function made of primitive ops. It reads sources that no query may see, so they must hold numbers.
Tensor attention(Tensor q, Tensor k, Tensor v, const Attention& options = {});
}  // namespace composed

}  // namespace tapehead::inline TAPEHEAD_REAL
