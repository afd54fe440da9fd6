// Position-wise feed-forward network: proj(activation(fc(x))) (Vaswani et al. 2017, section 3.3), or gated:
// proj(silu(gate(x)) * fc(x)) (SwiGLU, Shazeer 2020, eq. 6).
#pragma once

#include <optional>

#include "nn/config.h"
#include "nn/linear.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct FeedForward {
  Linear fc;                   // C -> F
  Linear proj;                 // F -> C
  std::optional<Linear> gate;  // C -> F, of swiglu
  ActivationKind activation = ActivationKind::gelu;

  struct Options {
    Index width = 0, inner = 0;  // C, F
    ActivationKind activation = ActivationKind::gelu;
    bool bias = true;
    double std = 0.02, output_std = 0.02;  // of fc and gate; of proj
  };
  static FeedForward make(Initialiser& init, const Options& options);
  Tensor operator()(Tensor x) const;  // [..., C] -> [..., C]
  template <class V>
  void visit(V& v) const {
    v("fc", fc);
    v("proj", proj);
    v("gate", gate);
  }
};

}  // namespace tapehead::inline TAPEHEAD_REAL
