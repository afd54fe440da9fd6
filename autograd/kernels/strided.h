// Element-wise loops over tensors of any strides: views, transposes, broadcasts.
//
// Axes that lie in memory as one are merged, and what remains is handed on in runs along the innermost axis, so that
// the common case, everything contiguous, is one run.
#pragma once

#include <array>
#include <utility>

#include "autograd/kernels/parallel.h"
#include "autograd/kernels/simd.h"
#include "autograd/tape.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// Nested loops over N operands, merged axes, outermost first. At least one axis.
template <std::size_t N>
struct Loops {
  using Steps = std::array<Index, N>;
  std::array<Index, kMaxRank> size{};
  std::array<Steps, kMaxRank> step{};
  std::size_t rank = 0;

  Loops(const Shape& shape, const std::array<Strides, N>& strides) {
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) continue;
      Steps steps;
      bool merges = rank > 0;
      for (std::size_t k = 0; k < N; ++k) {
        steps[k] = strides[k][static_cast<std::size_t>(axis)];
        merges = merges && step[rank - 1][k] == steps[k] * shape[axis];
      }
      if (!merges) size[rank++] = 1;
      size[rank - 1] *= shape[axis];
      step[rank - 1] = steps;
    }
    if (rank > 0) return;
    size[rank] = 1;
    step[rank++].fill(1);
  }
};

/// Calls f(at, count, step) for every run: operand k's elements are at[k] + i * step[k], i = 0 .. count - 1. Operand 0
/// is the one written: runs are shared among threads along the outermost axis unless it repeats there.
template <std::size_t N, class F>
void walk(const Shape& shape, const std::array<Strides, N>& strides, F f) {
  if (shape.numel() == 0) return;
  const Loops<N> loops(shape, strides);
  const std::size_t inner = loops.rank - 1;
  const auto rows = [&](Index begin, Index end, Index) {
    std::array<Index, kMaxRank> size = loops.size, i{};
    size[0] = end - begin;
    typename Loops<N>::Steps at;
    for (std::size_t k = 0; k < N; ++k) at[k] = begin * loops.step[0][k];
    while (true) {
      f(at, size[inner], loops.step[inner]);
      std::size_t axis = inner;
      for (; axis > 0; --axis) {
        const auto& step = loops.step[axis - 1];
        const bool more = ++i[axis - 1] < size[axis - 1];
        for (std::size_t k = 0; k < N; ++k) at[k] += more ? step[k] : -step[k] * (size[axis - 1] - 1);
        if (more) break;
        i[axis - 1] = 0;
      }
      if (axis == 0) return;
    }
  };
  if (loops.step[0][0] == 0) return rows(0, loops.size[0], 0);
  for_pieces(loops.size[0], shape.numel() / loops.size[0], rows);
}

struct Operand {
  Real* data;
  Strides strides;
};

/// x's strides under a shape it broadcasts to: 0 along axes that repeat.
inline Strides broadcast_strides(const Shape& from, const Strides& strides, const Shape& to) {
  Strides out{};
  for (int axis = 0; axis < from.rank(); ++axis)
    if (from[axis] != 1)
      out[static_cast<std::size_t>(to.rank() - from.rank() + axis)] = strides[static_cast<std::size_t>(axis)];
  return out;
}
inline Operand operand(Tensor x, Real* data, const Shape& shape) {
  return {data, broadcast_strides(x.shape(), x.strides(), shape)};
}
inline Operand value_of(Tensor x, const Shape& shape) { return operand(x, x.value(), shape); }

namespace detail {
template <class F, std::size_t... K>
void runs(const Shape& shape, F f, std::index_sequence<K...>, const std::array<Operand, sizeof...(K)>& x) {
  walk<sizeof...(K)>(shape, {x[K].strides...}, [&](const auto& at, Index count, const auto& step) {
    if (((step[K] == 1) && ...))
      f(count, (x[K].data + at[K])...);
    else
      f(count, simd::Strided{x[K].data + at[K], step[K]}...);
  });
}
}  // namespace detail

/// y = f(x ...), each element; f takes packets. No axis of y repeats.
template <class F, class... X>
void map(const Shape& shape, F f, const Operand& y, const X&... x) {
  const auto run = [f](Index count, auto y_row, auto... x_row) { simd::map(count, y_row, f, x_row...); };
  detail::runs(shape, run, std::make_index_sequence<1 + sizeof...(X)>{}, {y, x...});
}

/// y += f(x ...), each element; along axes where y repeats the terms are added up, in order.
template <class F, class... X>
void accumulate(const Shape& shape, F f, const Operand& y, const X&... x) {
  const auto run = [f](Index count, auto y_row, auto... x_row) {
    if constexpr (std::is_same_v<decltype(y_row), simd::Strided>)
      if (y_row.step == 0) {
        *y_row.first += simd::sum(count, f, x_row...);
        return;
      }
    simd::accumulate(count, y_row, f, x_row...);
  };
  detail::runs(shape, run, std::make_index_sequence<1 + sizeof...(X)>{}, {y, x...});
}

}  // namespace tapehead::inline TAPEHEAD_REAL
