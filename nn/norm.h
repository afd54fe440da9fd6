// Layer normalisation with learned gain and bias (Ba, Kiros and Hinton 2016).
#pragma once

#include "autograd/ops.h"
#include "nn/init.h"
#include "nn/module.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct LayerNorm {
  Parameter weight;  // [C], the gain
  Parameter bias;    // [C], or none

  static LayerNorm make(Initialiser& init, Index width, bool bias) {
    return {init.ones({width}), bias ? init.zeros({width}) : Parameter{}};
  }
  Tensor operator()(Tensor x) const {
    Tape& tape = x.tape();
    return layer_norm(x, tape.param(weight), bias ? tape.param(bias) : Tensor{});
  }
  template <class V>
  void visit(V& v) const {
    v("weight", weight);
    v("bias", bias);
  }
};

}  // namespace tapehead::inline TAPEHEAD_REAL
