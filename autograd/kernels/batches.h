// Matrices in the last two axes of a tensor, one per index of the leading axes, which broadcast among operands.
#pragma once

#include <algorithm>

#include "autograd/kernels/gemm.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// Where one operand's matrices lie: broadcast axes have stride 0.
struct Batches {
  Shape leading;    // broadcast of all operands' leading axes
  Strides strides{};  // of this operand along them
  Index row, column;

  Batches(Tensor x, const Shape& leading_axes) : leading(leading_axes) {
    const Shape& s = x.shape();
    for (int i = 1; i <= leading.rank() && i <= s.rank() - 2; ++i)
      if (s[-2 - i] != 1)
        strides[static_cast<std::size_t>(leading.rank() - i)] = x.strides()[static_cast<std::size_t>(s.rank() - 2 - i)];
    row = x.strides()[static_cast<std::size_t>(s.rank() - 2)];
    column = x.strides()[static_cast<std::size_t>(s.rank() - 1)];
  }

  /// Elements from the operand's first to the first of matrix `item`, counted in row-major order of `leading`.
  Index offset(Index item) const {
    Index offset = 0;
    for (int axis = leading.rank() - 1; axis >= 0; --axis) {
      offset += item % leading[axis] * strides[static_cast<std::size_t>(axis)];
      item /= leading[axis];
    }
    return offset;
  }
  ConstMatrix operator()(const Real* data, Index item) const { return {data + offset(item), row, column}; }
};

/// x, or a copy of it when neither of its last two axes has neighbours side by side in memory.
inline Tensor with_unit_stride(Tensor x) {
  const auto rank = static_cast<std::size_t>(x.rank());
  return x.strides()[rank - 1] == 1 || x.strides()[rank - 2] == 1 ? x : contiguous(x);
}

/// C += A B where C's gradient may be stored transposed: then C^T += B^T A^T.
inline void add_product(Index m, Index n, Index k, ConstMatrix a, ConstMatrix b, Real* c, const Batches& layout) {
  if (layout.column == 1)
    gemm_in_pieces(m, n, k, a, b, {c, layout.row}, true);
  else
    gemm_in_pieces(n, m, k, b.transposed(), a.transposed(), {c, layout.column}, true);
}

}  // namespace tapehead::inline TAPEHEAD_REAL
