// A tensor's elements in row-major order, whatever its strides, for code without vector registers.
#pragma once

#include "autograd/shape.h"

namespace tapehead {

/// Calls f(offset, count, stride) for runs along the last axis; `offset` counts elements from the tensor's first.
template <class F>
void for_each_run(const Shape& shape, const Strides& strides, F f) {
  if (shape.numel() == 0) return;
  const int rank = shape.rank();
  if (rank == 0) return f(Index{0}, Index{1}, Index{1});
  std::array<Index, kMaxRank> at{};
  for (Index offset = 0;;) {
    f(offset, shape[-1], strides[static_cast<std::size_t>(rank - 1)]);
    int axis = rank - 2;
    for (; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      offset += strides[a];
      if (++at[a] < shape[axis]) break;
      offset -= strides[a] * shape[axis];
      at[a] = 0;
    }
    if (axis < 0) return;
  }
}

}  // namespace tapehead
