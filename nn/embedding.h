// Token embedding: row id of a table [V, C]. The same table, transposed, may serve as the output head (Press and Wolf
// 2017): logits = x table^T.
#pragma once

#include "autograd/ops.h"
#include "nn/init.h"
#include "nn/module.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct Embedding {
  Parameter weight;  // [V, C]

  static Embedding make(Initialiser& init, Index vocabulary, Index width, double std) {
    return {init.normal({vocabulary, width}, std)};
  }
  Tensor operator()(Ids ids) const { return embedding(ids, ids.tape().param(weight)); }  // [..., ] -> [..., C]
  template <class V>
  void visit(V& v) const {
    v("weight", weight);
  }
};

}  // namespace tapehead::inline TAPEHEAD_REAL
