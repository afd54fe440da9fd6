// Loops over a row of numbers with the widest vector registers of the target, through Eigen's packet functions.
//
// The last, incomplete packet is padded and goes through the same instructions as the others, and lanes are combined
// in a fixed order: a row's result depends on its numbers alone, never on its address or on what stands beside it.
// (Eigen's own Array::exp() and sum() peel by address.) Functions of a packet are in simd_math.h.
#pragma once

// g++ 12 takes the deliberately undefined registers inside its own AVX-512 header for mistakes (its bug 105593), and
// warns that a vector type loses its attributes as a template argument, where they do not matter.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <Eigen/Core>
#pragma GCC diagnostic pop
#pragma GCC diagnostic ignored "-Wignored-attributes"
#else
#include <Eigen/Core>
#endif

#include <algorithm>
#include <limits>

#include "autograd/real.h"
#include "autograd/shape.h"

namespace tapehead::inline TAPEHEAD_REAL::simd {

namespace packet = Eigen::internal;
using Packet = packet::packet_traits<Real>::type;  // supports + - * / as Real does
constexpr Index kLanes = packet::unpacket_traits<Packet>::size;

inline Packet all(Real x) { return packet::pset1<Packet>(x); }

// --- operands: a row without gaps is a pointer; otherwise neighbours lie `step` apart, and step 0 repeats one number
struct Strided {
  Real* first;
  Index step;
};

inline Packet load(const Real* x, Index i) { return packet::ploadu<Packet>(x + i); }
inline Packet load(Strided x, Index i) {
  if (x.step == 1) return load(x.first, i);
  if (x.step == 0) return all(*x.first);
  return packet::pgather<Real, Packet>(x.first + i * x.step, x.step);
}
inline void store(Real* y, Index i, Packet v) { packet::pstoreu(y + i, v); }
inline void store(Strided y, Index i, Packet v) {
  if (y.step == 1) return store(y.first, i, v);
  packet::pscatter<Real, Packet>(y.first + i * y.step, v, y.step);
}

inline Real& element(const Real* x, Index i) { return const_cast<Real*>(x)[i]; }
inline Real& element(Strided x, Index i) { return x.first[i * x.step]; }

struct alignas(Packet) Lanes {
  Real lane[kLanes];
  Packet get() const { return packet::pload<Packet>(lane); }
};
template <class X>
Packet load_part(X x, Index i, Index count, Real pad = 0) {
  Lanes part;
  for (Index j = 0; j < kLanes; ++j) part.lane[j] = j < count ? element(x, i + j) : pad;
  return part.get();
}
template <class Y>
void store_part(Y y, Index i, Index count, Packet v) {
  Lanes part;
  packet::pstore(part.lane, v);
  for (Index j = 0; j < count; ++j) element(y, i + j) = part.lane[j];
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

/// sum of f(x_i ...) over begin <= i < end
template <class F, class... X>
Real sum_block(Index begin, Index end, F f, X... x) {
  Packet total = all(0);
  Index i = begin;
  for (; i + kLanes <= end; i += kLanes) total = total + f(load(x, i)...);
  if (i < end) {
    Lanes part;
    packet::pstore(part.lane, f(load_part(x, i, end - i)...));
    total = total + load_part(static_cast<const Real*>(part.lane), 0, end - i);  // f of the padding need not be 0
  }
  return packet::predux(total);
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
  for (; i + kLanes <= n; i += kLanes) best = packet::pmax(best, load(x, i));
  if (i < n) best = packet::pmax(best, load_part(x, i, n - i, kLowest));
  return packet::predux_max(best);
}

}  // namespace tapehead::inline TAPEHEAD_REAL::simd
