// Multi-head attention (Vaswani et al. 2017, section 3.2.2): learned matrices W_Q, W_K, W_V, W_O, shared by all
// positions, and H attentions side by side, each over its own D columns of the projections.
//
// One module serves as self-attention (source = x) and as cross-attention (another sequence, of another length and
// width). q, k and v lie next to each other in memory, so that what reads the same input is one product.
#pragma once

#include "autograd/attention.h"
#include "nn/linear.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct MultiHeadAttention {
  Linear q, k, v, o;
  Index heads = 1;
  Real temperature = 1;

  struct Options {
    Index width = 0;         // C of the queries and of the output
    Index source_width = 0;  // of what keys and values read; 0: the same
    Index heads = 1;         // width is a multiple
    bool bias = true;
    Real temperature = 1;
    double std = 0.02;         // of q, k, v
    double output_std = 0.02;  // of o
  };
  /// Throws ShapeError when heads do not divide width.
  static MultiHeadAttention make(Initialiser& init, const Options& options);

  /// x [..., T, C], source [..., S, C'] -> [..., T, C]; mask.allowed broadcasts to [..., H, T, S].
  Tensor operator()(Tensor x, Tensor source, const Mask& mask = {}) const;
  Tensor operator()(Tensor x, const Mask& mask = {}) const { return (*this)(x, x, mask); }

  template <class V>
  void visit(V& visitor) const {
    visitor("q", q);
    visitor("k", k);
    visitor("v", v);
    visitor("o", o);
  }
};

}  // namespace tapehead::inline TAPEHEAD_REAL
