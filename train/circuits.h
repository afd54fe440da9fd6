// Circuits: what a head's matrices do to tokens, whatever stands in between (Elhage et al. 2021, "A mathematical
// framework for transformer circuits"). Norms and biases are left out.
#pragma once

#include "train/interventions.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// Over the whole vocabulary, [V, V] each.
struct Circuits {
  HeadPlace place;
  std::vector<float> qk;  // W_E W_QK W_E^T / sqrt(D): how much query token (row) attends to key token (column)
  std::vector<float> ov;  // W_E W_OV W_U: how much key token (row), when looked at, raises each token (column)
  double copying = 0;     // sum of the eigenvalues of ov / sum of their absolute values: 1 when it raises what it reads
};
/// Throws ConfigError for a vocabulary of more than `most` tokens.
std::vector<Circuits> circuits(const Model& model, std::int64_t most = 400);

/// How much of what head `from` writes head `to` reads by its queries, keys or values:
/// |W_to W_from|_F / (|W_to|_F |W_from|_F) (the same paper).
struct Composition {
  HeadPlace from, to;
  double q = 0, k = 0, v = 0;
};
std::vector<Composition> compositions(const Model& model);

}  // namespace tapehead::inline TAPEHEAD_REAL
