// Matrices in the last two axes of a tensor, one per index of the leading axes, which broadcast among operands.
#pragma once

#include <algorithm>
#include <array>

#include "autograd/kernels/gemm.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// Where one operand's matrices lie: broadcast axes have stride 0.
struct Batches {
  Shape leading;      // broadcast of all operands' leading axes
  Strides strides{};  // of this operand along them
  Index row, column;
  Index group = 1;  // so many neighbours along the last of them share a matrix

  Batches(Tensor x, const Shape& leading_axes) : leading(leading_axes) {
    const Shape& s = x.shape();
    for (int i = 1; i <= leading.rank() && i <= s.rank() - 2; ++i)
      if (s[-2 - i] != 1)
        strides[static_cast<std::size_t>(leading.rank() - i)] = x.strides()[static_cast<std::size_t>(s.rank() - 2 - i)];
    row = x.strides()[static_cast<std::size_t>(s.rank() - 2)];
    column = x.strides()[static_cast<std::size_t>(s.rank() - 1)];
    if (leading.rank() > 0 && s.rank() > 2 && s[-3] > 1) group = leading[-1] / s[-3];
  }

  /// Elements from the operand's first to the first of matrix `item`, counted in row-major order of `leading`.
  Index offset(Index item) const {
    Index offset = 0;
    for (int axis = leading.rank() - 1; axis >= 0; --axis) {
      const Index at = item % leading[axis];
      offset += (axis == leading.rank() - 1 ? at / group : at) * strides[static_cast<std::size_t>(axis)];
      item /= leading[axis];
    }
    return offset;
  }
  /// How many matrices in a row share memory: 1 when each has its own, all when equal ones do not follow each other.
  Index sharing() const {
    Index run = group;
    int axis = leading.rank() - (group > 1 ? 2 : 1);
    if (group == 1)
      for (; axis >= 0 && (leading[axis] == 1 || repeats(axis)); --axis) run *= leading[axis];
    for (; axis >= 0; --axis)
      if (leading[axis] > 1 && repeats(axis)) return leading.numel();
    return run;
  }
  ConstMatrix operator()(const Real* data, Index item) const { return {data + offset(item), row, column}; }

 private:
  bool repeats(int axis) const { return strides[static_cast<std::size_t>(axis)] == 0; }
};

/// x, or a copy of it when neither of its last two axes has neighbours side by side in memory.
inline Tensor with_unit_stride(Tensor x) {
  const auto rank = static_cast<std::size_t>(x.rank());
  return x.strides()[rank - 1] == 1 || x.strides()[rank - 2] == 1 ? x : contiguous(x);
}

/// x, or a copy of it whose rows lie without gaps.
inline Tensor with_dense_rows(Tensor x) {
  return x.size(-1) <= 1 || x.strides()[static_cast<std::size_t>(x.rank() - 1)] == 1 ? x : contiguous(x);
}

/// Strides for a new tensor whose leading axes are those of x, with these in the order in which x's lie in memory:
/// heads split from a joined width [B, T, H D] join again without a copy. Row-major when they differ from x's.
inline Strides dense_like(Tensor x, const Shape& shape) {
  const int last = shape.rank() - 1;
  if (x.shape().first(last) != shape.first(last)) return shape.row_major();
  const Strides of_x = x.strides();
  std::array<std::size_t, kMaxRank> axes{};  // by falling stride of x
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(last); ++axis) {
    std::size_t at = axis;
    for (; at > 0 && of_x[axes[at - 1]] < of_x[axis]; --at) axes[at] = axes[at - 1];
    axes[at] = axis;
  }
  Strides strides{};
  strides[static_cast<std::size_t>(last)] = 1;
  Index step = shape[last];
  for (int i = last - 1; i >= 0; --i) {
    const std::size_t axis = axes[static_cast<std::size_t>(i)];
    strides[axis] = step;
    step *= shape[static_cast<int>(axis)];
  }
  return strides;
}

/// C += A B where C's gradient may be stored transposed: then C^T += B^T A^T.
inline void add_product(Index m, Index n, Index k, ConstMatrix a, ConstMatrix b, Real* c, const Batches& layout) {
  if (layout.column == 1)
    gemm_in_pieces(m, n, k, a, b, {c, layout.row}, true);
  else
    gemm_in_pieces(n, m, k, b.transposed(), a.transposed(), {c, layout.column}, true);
}

}  // namespace tapehead::inline TAPEHEAD_REAL
