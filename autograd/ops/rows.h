// What ops over the last axis share: the cut of a tensor into rows.
#pragma once

#include <string>

#include "autograd/kernels/parallel.h"
#include "autograd/kernels/simd_math.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// Calls f(offset of the row's first element, row) for the rows of a contiguous tensor, cut into pieces; f's work is
/// about `work` operations an element.
template <class F>
void for_rows(const Shape& shape, Index work, F f) {
  const Index width = shape[-1];
  if (width == 0) return;
  for_pieces(shape.numel() / width, work * width, [&](Index begin, Index end, Index) {
    for (Index row = begin; row < end; ++row) f(row * width, row);
  });
}

/// "[2, 0]": the place of the index-th element, for messages.
inline std::string position(const Shape& shape, Index index) {
  std::array<Index, kMaxRank> at{};
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    at[static_cast<std::size_t>(axis)] = index % shape[axis];
    index /= shape[axis];
  }
  return Shape(at.data(), shape.rank()).str();
}

}  // namespace tapehead::inline TAPEHEAD_REAL
