// Cutting one op's work for several threads: into pieces whose number depends on the size of the problem, never on the
// number of threads, so that sums kept per piece and added in order have the same bits at any thread count.
#pragma once

#include <omp.h>

#include <algorithm>

#include "autograd/shape.h"

namespace tapehead {

constexpr Index kMaxPieces = 8;
constexpr Index kPieceWork = Index{1} << 15;  // element operations that outweigh a fork and a join

/// Into how many pieces for_pieces() cuts `count` items of `work` element operations each: 1 to kMaxPieces.
inline Index piece_count(Index count, Index work) {
  return std::clamp<Index>(count * std::max<Index>(work, 1) / kPieceWork, 1, std::clamp<Index>(count, 1, kMaxPieces));
}

/// How many pieces run at the same time at most: as many scratch buffers are enough.
inline Index worker_count(Index count, Index work) {
  return omp_in_parallel() ? 1 : std::min<Index>(piece_count(count, work), omp_get_max_threads());
}

/// Calls f(begin, end, piece, worker) for ranges that make up 0 .. count - 1; calls with one worker's number, below
/// worker_count(), never overlap. Inside a parallel region, or with one thread, one after the other and without a
/// region of its own (opening one for a single thread allocates). f must not throw.
template <class F>
void for_pieces_by_worker(Index count, Index work, F f) {
  const Index pieces = piece_count(count, work);
  const auto run = [&](Index p, Index worker) { f(count * p / pieces, count * (p + 1) / pieces, p, worker); };
  if (worker_count(count, work) == 1) {
    for (Index p = 0; p < pieces; ++p) run(p, 0);
    return;
  }
#pragma omp parallel for schedule(static)
  for (Index p = 0; p < pieces; ++p) run(p, omp_get_thread_num());
}

/// The same for an f(begin, end, piece) that needs no scratch.
template <class F>
void for_pieces(Index count, Index work, F f) {
  for_pieces_by_worker(count, work, [&](Index begin, Index end, Index piece, Index) { f(begin, end, piece); });
}

}  // namespace tapehead
