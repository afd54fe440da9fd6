// Positions: what tells a token where it stands. Learned and sinusoidal ones are added to its embedding; rotary ones
// turn queries and keys; ALiBi lowers scores by distance.
#pragma once

#include <vector>

#include "autograd/ops.h"
#include "nn/config.h"
#include "nn/init.h"
#include "nn/module.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct Positions {
  PositionKind kind = PositionKind::none;
  Parameter weight;  // [context, C] when learned, else none
  double rope_base = 10000, rope_fraction = 1;

  static Positions make(Initialiser& init, const ModelConfig& config);
  /// x [..., T, C] -> x + positions first .. first + T - 1, where the kind adds any. Throws ShapeError when they exceed
  /// a learned table.
  Tensor operator()(Tensor x, Index first = 0) const;
  /// The table that turns heads of `width` channels, empty for other kinds.
  Tensor rotation(Tape& tape, Index first, Index length, Index width) const;
  template <class V>
  void visit(V& v) const {
    v("weight", weight);
  }
};

/// P[t, 2i] = sin(t / 10000^(2i / C)), P[t, 2i + 1] = cos of the same (Vaswani et al. 2017, section 3.5): [T, C].
Tensor sinusoidal_positions(Tape& tape, Index first, Index length, Index width);

/// For rope(): (cos, sin) of t / base^(i / pairs), t = first .. first + length - 1, i < pairs (Su et al. 2021,
/// section 3.2.2): [T, pairs, 2]. Scores of turned queries and keys depend on positions by their difference alone.
Tensor rotary_table(Tape& tape, Index first, Index length, Index pairs, double base);

/// 2^(-8 (h + 1) / H) for H a power of two; else those of the next lower power, then every other one of the next higher
/// (Press et al. 2022, section 3 and the code they published): [H].
std::vector<Real> alibi_slopes(Index heads);

}  // namespace tapehead::inline TAPEHEAD_REAL
