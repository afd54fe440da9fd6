// Functions of one packet: exp, log, tanh, sigmoid, the normal distribution. Branch-free, so that every lane gets the
// same instructions.
//
// exp and tanh share one reduction, x = n ln 2 + r with |r| <= ln(2) / 2, and the Taylor sum of e^r - 1, cut where the
// first term left out is below 0.04 units in the last place (ulp). The errors stated are the largest measured, over
// every seventh float and 1.6e7 random doubles. All are inlined by force: a loop then keeps their constants in
// registers (exact GELU takes two thirds of the time).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "autograd/kernels/simd.h"

namespace tapehead::inline TAPEHEAD_REAL::simd {

/// c_0 + c_1 x + c_2 x^2 + ... (Horner)
template <std::size_t N>
[[gnu::always_inline]] inline Packet polynomial(Packet x, const Real (&c)[N]) {
  Packet y = all(c[N - 1]);
  for (std::size_t i = N - 1; i-- > 0;) y = ei::pmadd(y, x, all(c[i]));
  return y;
}

constexpr bool kDouble = sizeof(Real) == 8;
constexpr int kMantissaBits = kDouble ? 52 : 23;
// NOLINTNEXTLINE(modernize-use-using): clang 14 takes this attribute on a typedef alone
typedef std::conditional_t<kDouble, std::uint64_t, std::uint32_t> Bits __attribute__((vector_size(sizeof(Packet))));

/// x = n ln 2 + r. `power` holds n << kMantissaBits: added to the bits of a number it multiplies by 2^n.
struct Reduced {
  Bits power;
  Packet r;
};
[[gnu::always_inline]] inline Reduced reduce(Packet x) {
  // adding 1.5 * 2^kMantissaBits rounds to an integer and leaves it in the lowest bits
  constexpr Real kShift = kDouble ? Real(0x1.8p52) : Real(0x1.8p23);
  // ln 2 in two parts: n * kHigh is exact even without a fused multiply-add
  constexpr Real kHigh = kDouble ? Real(0x162E42FEFAp-37L) : Real(355.0 / 512);
  constexpr Real kLow = static_cast<Real>(0.693147180559945309417232121458L - static_cast<long double>(kHigh));
  const Packet shifted = ei::pmadd(x, all(std::numbers::log2e_v<Real>), all(kShift));
  const Packet n = shifted - all(kShift);
  const Packet r = ei::pmadd(n, all(-kLow), ei::pmadd(n, all(-kHigh), x));
  return {std::bit_cast<Bits>(shifted) << kMantissaBits, r};
}
[[gnu::always_inline]] inline Packet times_power(Packet x, Bits power) {
  return std::bit_cast<Packet>(std::bit_cast<Bits>(x) + power);
}

/// e^r - 1 = r + r^2 (1/2! + r/3! + ...)
[[gnu::always_inline]] inline Packet expm1_reduced(Packet r) {
  constexpr Real k2 = Real(1) / 2, k3 = k2 / 3, k4 = k3 / 4, k5 = k4 / 5, k6 = k5 / 6, k7 = k6 / 7, k8 = k7 / 8,
                 k9 = k8 / 9, k10 = k9 / 10, k11 = k10 / 11, k12 = k11 / 12, k13 = k12 / 13;
  if constexpr (kDouble)
    return ei::pmadd(polynomial(r, {k2, k3, k4, k5, k6, k7, k8, k9, k10, k11, k12, k13}), r * r, r);
  else
    return ei::pmadd(polynomial(r, {k2, k3, k4, k5, k6, k7}), r * r, r);
}

/// e^x for -80 <= x <= 80; 1.1 ulp.
[[gnu::always_inline]] inline Packet exp_bounded(Packet x) {
  const Reduced e = reduce(x);
  return times_power(all(1) + expm1_reduced(e.r), e.power);
}

/// e^x; 0 where the result would lie below the normal numbers, which are slow. 1.1 ulp.
[[gnu::always_inline]] inline Packet exp(Packet x) {
  constexpr Real kLowest = kDouble ? Real(-708.3964185) : Real(-87.336544);       // log of the smallest normal number
  constexpr Real kHighest = kDouble ? Real(709.782712893384) : Real(88.7228391);  // and of the largest number
  const Packet finite =
      where_less(x, all(kHighest), exp_bounded(x), x + all(std::numeric_limits<Real>::infinity()));  // keeps NaN
  return where_less(x, all(kLowest), all(0), finite);
}

/// sum_i exp(x_i - shift)
inline Real sum_exp(Index n, const Real* x, Real shift) {
  return sum(
      n, [s = all(shift)](Packet x_i) { return exp(x_i - s); }, x);
}

/// What a row's softmax was made of: its largest element, and the sum of exp(x_i - largest).
struct RowSum {
  Real largest, total;
};
/// y = softmax(x) for one row; y may be x. The last packet stays in its register: loading again what was just stored
/// in part would wait for the store.
inline RowSum softmax(Index n, const Real* x, Real* y) {
  constexpr Real kMinusInfinity = -std::numeric_limits<Real>::infinity();
  const Index whole = n - n % kLanes, rest = n - whole;
  const Real largest = max(n, x);
  const auto weight = [shift = all(largest)](Packet x_i) { return exp(x_i - shift); };
  Packet sum = all(0), last = sum;
  for (Index i = 0; i < whole; i += kLanes) {
    const Packet e = weight(load(x, i));
    store(y, i, e);
    sum = sum + e;
  }
  if (rest > 0) last = weight(first_lanes(load_part(x, whole, rest), rest, kMinusInfinity));
  const Real total = ei::predux(Packet(sum + last));
  const Packet norm = all(1 / total);
  for (Index i = 0; i < whole; i += kLanes) store(y, i, norm * load(y, i));
  if (rest > 0) store_part(y, whole, rest, norm * last);
  return {largest, total};
}

/// log x of each lane, from the C library.
inline Packet log(Packet x) {
  Lanes v;
  ei::pstore(v.lane, x);
  for (Real& lane : v.lane) lane = std::log(lane);
  return ei::pload<Packet>(v.lane);
}

/// 1 / (1 + e^-x); 2.5 ulp.
[[gnu::always_inline]] inline Packet sigmoid(Packet x) { return all(1) / (all(1) + exp(-x)); }

/// tanh |x| = m / (m + 2) with m = e^(2 |x|) - 1 = 2^n (e^r - 1) + (2^n - 1), which keeps small x exact; 2.6 ulp.
[[gnu::always_inline]] inline Packet tanh(Packet x) {
  constexpr Real kOne = kDouble ? Real(20) : Real(10);  // beyond, tanh rounds to 1
  const Packet a = ei::pabs(x);
  const Reduced e = reduce(all(2) * where_less(all(kOne), a, all(kOne), a));
  const Packet power = times_power(all(1), e.power);
  const Packet m = ei::pmadd(power, expm1_reduced(e.r), power - all(1)), y = m / (m + all(2));
  return where_less(x, all(0), -y, y);
}

/// The standard normal distribution at x: Phi(x), and e^(-x^2 / 2) = sqrt(2 pi) Phi'(x).
struct Normal {
  Packet cdf, bell;
};
/// In float: Phi(-|x|) = e^(-x^2 / 2) t P(t) with t = 1 / (1 + 0.35 |x|); P, of degree 8, is a least-squares fit at
/// 2000 Chebyshev points, reweighted towards the smallest relative error (Lawson), which is 0.5 ulp before rounding. 6
/// ulp after it, in both tails; 0 below -12.5, where the result would soon be too small. In double: the C library,
/// whose argument is rounded: 250 ulp at -12.5, fewer than 2 near 0.
[[gnu::always_inline]] inline Packet normal_ratio(Packet t) {
  return t * polynomial(t, {Real(0.13962141), Real(0.13986187), Real(0.11983287), Real(0.10550799), Real(-0.023109814),
                            Real(0.15917413), Real(-0.25571424), Real(0.14397168), Real(-0.029145928)});
}
[[gnu::always_inline]] inline Normal normal(Packet x) {
  if constexpr (kDouble) {
    Lanes v;
    ei::pstore(v.lane, x);
    for (Real& lane : v.lane) lane = std::erfc(-lane / std::numbers::sqrt2_v<Real>) / 2;
    return {ei::pload<Packet>(v.lane), exp(all(Real(-0.5)) * x * x)};
  }
  constexpr Real kFar = 12.5;
  const Packet a = ei::pabs(x), near = where_less(all(kFar), a, all(kFar), a);
  const Packet square = near * near, excess = ei::pmadd(-near, near, square);  // x^2 = square - excess
  const Packet e = exp_bounded(all(Real(-0.5)) * square) * ei::pmadd(excess, all(Real(0.5)), all(1));
  const Packet bell = where_less(all(kFar), a, all(0), e);
  const Packet tail = bell * normal_ratio(all(1) / ei::pmadd(near, all(Real(0.35)), all(1)));
  return {where_less(x, all(0), tail, all(1) - tail), bell};
}

}  // namespace tapehead::inline TAPEHEAD_REAL::simd
