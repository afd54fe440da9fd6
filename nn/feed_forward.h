// Position-wise feed-forward network: proj(activation(fc(x))) (Vaswani et al. 2017, section 3.3).
#pragma once

#include "nn/config.h"
#include "nn/linear.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct FeedForward {
  Linear fc;    // C -> F
  Linear proj;  // F -> C
  ActivationKind activation;

  Tensor operator()(Tensor x) const;  // [..., C] -> [..., C]
  template <class V>
  void visit(V& v) const {
    v("fc", fc);
    v("proj", proj);
  }
};

}  // namespace tapehead::inline TAPEHEAD_REAL
