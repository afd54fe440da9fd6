// Cutting one op's work for several threads, so that the result is the same at any number of them.
#pragma once

#include <omp.h>

#include <algorithm>

#include "autograd/shape.h"

namespace tapehead {

/// Calls f(begin, end) for pieces of 0 .. count - 1: as many as the work calls for (one per 2^17 multiply-adds of
/// `work` an item), at most 8, whatever the number of threads. Inside a parallel region they run one after the other.
/// f must not throw, and no piece may write what another reads.
template <class F>
void for_pieces(Index count, Index work, F f) {
  constexpr Index kMostPieces = 8, kWorthAPiece = Index{1} << 17;
  const Index pieces =
      std::clamp<Index>(count * work / kWorthAPiece, 1, std::min(kMostPieces, std::max<Index>(count, 1)));
  if (pieces == 1) return f(Index{0}, count);
#pragma omp parallel for schedule(static) if (!omp_in_parallel())
  for (Index i = 0; i < pieces; ++i) f(count * i / pieces, count * (i + 1) / pieces);
}

}  // namespace tapehead
