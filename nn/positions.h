// Positions: what tells a token where it stands, added to its embedding.
#pragma once

#include "autograd/ops.h"
#include "nn/config.h"
#include "nn/init.h"
#include "nn/module.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct Positions {
  PositionKind kind = PositionKind::none;
  Parameter weight;  // [context, C] when learned, else none

  static Positions make(Initialiser& init, PositionKind kind, Index context, Index width, double std);
  /// x [..., T, C] -> x + positions 0 .. T - 1. Throws ShapeError when T exceeds a learned table.
  Tensor operator()(Tensor x) const;
  template <class V>
  void visit(V& v) const {
    v("weight", weight);
  }
};

/// P[t, 2i] = sin(t / 10000^(2i / C)), P[t, 2i + 1] = cos of the same (Vaswani et al. 2017, section 3.5): [T, C].
Tensor sinusoidal_positions(Tape& tape, Index length, Index width);

}  // namespace tapehead::inline TAPEHEAD_REAL
