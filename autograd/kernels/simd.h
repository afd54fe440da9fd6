// Loops over a row of numbers with the widest vector registers of the target.
//
// The last, incomplete packet is padded and goes through the same instructions as the others, and lanes are combined
// in a fixed order: a row's result depends on its numbers alone, never on its address or on what stands beside it.
// (Eigen's own Array::exp() and sum() peel by address.) Functions of a packet are in simd_math.h.
#pragma once

#include <algorithm>
#include <limits>

#include "autograd/kernels/packet.h"

namespace tapehead::inline TAPEHEAD_REAL::simd {

using tapehead::Packet;  // supports + - * / as Real does
constexpr Index kLanes = kPacket;

inline Packet all(Real x) { return ei::pset1<Packet>(x); }
/// a < b ? x : y, each lane. Where a or b is NaN: y.
inline Packet where_less(Packet a, Packet b, Packet x, Packet y) { return a < b ? x : y; }
/// The first `count` lanes of x, then `pad`.
inline Packet first_lanes(Packet x, Index count, Real pad) {
  return where_less(ei::plset<Packet>(Real{0}), all(static_cast<Real>(count)), x, all(pad));
}

// --- operands: a row without gaps is a pointer; otherwise neighbours lie `step` apart, and step 0 repeats one number
struct Strided {
  Real* first;
  Index step;
};

inline Packet load(const Real* x, Index i) { return ei::ploadu<Packet>(x + i); }
inline Packet load(Strided x, Index i) {
  if (x.step == 1) return load(x.first, i);
  if (x.step == 0) return all(*x.first);
  return ei::pgather<Real, Packet>(x.first + i * x.step, x.step);
}
inline void store(Real* y, Index i, Packet v) { ei::pstoreu(y + i, v); }
inline void store(Strided y, Index i, Packet v) {
  if (y.step == 1) return store(y.first, i, v);
  ei::pscatter<Real, Packet>(y.first + i * y.step, v, y.step);
}

// The same for `count` numbers, fewer than kLanes; 0 stands behind them. Where the target has masked moves they are
// used: numbers stored one by one and loaded together would wait for the stores.
struct alignas(sizeof(Packet)) Lanes {
  Real lane[kLanes];
};
template <class P>
constexpr auto mask(Index count) {
  return static_cast<typename ei::unpacket_traits<P>::mask_t>((1u << count) - 1);
}
inline Packet gather_part(Strided x, Index i, Index count) {
  Lanes part{};
  for (Index j = 0; j < count; ++j) part.lane[j] = x.first[(i + j) * x.step];
  return ei::pload<Packet>(part.lane);
}
inline void scatter_part(Strided y, Index i, Index count, Packet v) {
  Lanes part;
  ei::pstore(part.lane, v);
  for (Index j = 0; j < count; ++j) y.first[(i + j) * y.step] = part.lane[j];
}
template <class P = Packet>
P load_part(const Real* x, Index i, Index count) {
  if constexpr (ei::unpacket_traits<P>::masked_load_available)
    return ei::ploadu<P>(x + i, mask<P>(count));
  else
    return gather_part({const_cast<Real*>(x), 1}, i, count);
}
inline Packet load_part(Strided x, Index i, Index count) {
  if (x.step == 1) return load_part(x.first, i, count);
  if (x.step == 0) return all(*x.first);
  return gather_part(x, i, count);
}
template <class P = Packet>
void store_part(Real* y, Index i, Index count, P v) {
  if constexpr (ei::unpacket_traits<P>::masked_store_available)
    ei::pstoreu(y + i, v, mask<P>(count));
  else
    scatter_part({y, 1}, i, count, v);
}
inline void store_part(Strided y, Index i, Index count, Packet v) {
  if (y.step == 1) return store_part(y.first, i, count, v);
  scatter_part(y, i, count, v);
}

// --- loops; f takes one packet of each x
/// y_i = f(x_i ...)
template <class Y, class F, class... X>
void map(Index n, Y y, F f, X... x) {
  Index i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y, i, f(load(x, i)...));
  if (i < n) store_part(y, i, n - i, f(load_part(x, i, n - i)...));
}

/// y_i += f(x_i ...)
template <class Y, class F, class... X>
void accumulate(Index n, Y y, F f, X... x) {
  map(
      n, y, [f](Packet y_i, auto... x_i) { return y_i + f(x_i...); }, y, x...);
}

/// The sum of f(x_i ...) over begin <= i < end.
template <class F, class... X>
Real sum_block(Index begin, Index end, F f, X... x) {
  Packet total = all(0);
  Index i = begin;
  for (; i + kLanes <= end; i += kLanes) total = total + f(load(x, i)...);
  // f of the padding need not be 0
  if (i < end) total = total + first_lanes(f(load_part(x, i, end - i)...), end - i, 0);
  return ei::predux(total);
}
/// sum_i f(x_i ...); long rows in blocks that are added in double, so that rounding does not grow with the length
template <class F, class... X>
Real sum(Index n, F f, X... x) {
  constexpr Index kBlock = 4096;
  if (n <= kBlock) return sum_block(0, n, f, x...);
  double total = 0;
  for (Index i = 0; i < n; i += kBlock) total += static_cast<double>(sum_block(i, std::min(i + kBlock, n), f, x...));
  return static_cast<Real>(total);
}

/// sum_i x_i
inline Real total(Index n, const Real* x) {
  return sum(
      n, [](Packet x_i) { return x_i; }, x);
}

/// The largest x_i; -infinity for an empty row.
inline Real max(Index n, const Real* x) {
  constexpr Real kLowest = -std::numeric_limits<Real>::infinity();
  Packet best = all(kLowest);
  Index i = 0;
  for (; i + kLanes <= n; i += kLanes) best = ei::pmax(best, load(x, i));
  if (i < n) best = ei::pmax(best, first_lanes(load_part(x, i, n - i), n - i, kLowest));
  return ei::predux_max(best);
}

}  // namespace tapehead::inline TAPEHEAD_REAL::simd
