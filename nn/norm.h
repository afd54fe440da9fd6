// Normalisation with learned gain: layer norm (Ba, Kiros and Hinton 2016), RMS norm (Zhang and Sennrich 2019), or none.
#pragma once

#include "autograd/ops.h"
#include "nn/config.h"
#include "nn/init.h"
#include "nn/module.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct Norm {
  NormKind kind = NormKind::layer;
  Parameter weight;  // [C], the gain; none without normalisation
  Parameter bias;    // [C], or none; RMS norm has none

  static Norm make(Initialiser& init, NormKind kind, Index width, bool bias) {
    if (kind == NormKind::none) return {kind, {}, {}};
    return {kind, init.ones({width}), bias && kind == NormKind::layer ? init.zeros({width}) : Parameter{}};
  }
  Tensor operator()(Tensor x) const {
    Tape& tape = x.tape();
    if (kind == NormKind::none) return x;
    if (kind == NormKind::rms) return rms_norm(x, tape.param(weight));
    return layer_norm(x, tape.param(weight), bias ? tape.param(bias) : Tensor{});
  }
  template <class V>
  void visit(V& v) const {
    v("weight", weight);
    v("bias", bias);
  }
};

}  // namespace tapehead::inline TAPEHEAD_REAL
