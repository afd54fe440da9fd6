// Linear layer: y = x W^T + b, weight [out, in].
#pragma once

#include "autograd/ops.h"
#include "nn/init.h"
#include "nn/module.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct Linear {
  Parameter weight;  // [out, in]
  Parameter bias;    // [out], or none

  static Linear make(Initialiser& init, Index in, Index out, bool bias, double std) {
    return {init.normal({out, in}, std), bias ? init.zeros({out}) : Parameter{}};
  }
  Tensor operator()(Tensor x) const {  // [..., in] -> [..., out]
    Tape& tape = x.tape();
    return linear(x, tape.param(weight), bias ? tape.param(bias) : Tensor{});
  }
  template <class V>
  void visit(V& v) const {
    v("weight", weight);
    v("bias", bias);
  }
};

}  // namespace tapehead::inline TAPEHEAD_REAL
