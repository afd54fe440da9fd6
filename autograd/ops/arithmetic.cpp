// Sums, differences, products and quotients, with NumPy broadcasting.
#include "autograd/ops/pointwise.h"

namespace tapehead::inline TAPEHEAD_REAL {

Tensor add(Tensor a, Tensor b) {
  const auto one = [](auto, auto) { return simd::all(1); };
  return binary(
      "add", a, b, [](auto a_i, auto b_i) { return a_i + b_i; }, one, one);
}

Tensor sub(Tensor a, Tensor b) {
  const auto one = [](auto, auto) { return simd::all(1); };
  const auto minus_one = [](auto, auto) { return simd::all(-1); };
  return binary(
      "sub", a, b, [](auto a_i, auto b_i) { return a_i - b_i; }, one, minus_one);
}

Tensor mul(Tensor a, Tensor b) {
  const auto product = [](auto a_i, auto b_i) { return a_i * b_i; };
  return binary(
      "mul", a, b, product, [](auto, auto b_i) { return b_i; }, [](auto a_i, auto) { return a_i; });
}

Tensor div(Tensor a, Tensor b) {
  const auto quotient = [](auto a_i, auto b_i) { return a_i / b_i; };
  const auto da = [](auto, auto b_i) { return simd::all(1) / b_i; };
  const auto db = [](auto a_i, auto b_i) { return -a_i / (b_i * b_i); };
  return binary("div", a, b, quotient, da, db);
}

Tensor scale(Tensor x, Real factor) {
  const auto times = [factor](auto x_i) { return simd::all(factor) * x_i; };
  return unary("scale", x, times, [factor](auto, auto) { return simd::all(factor); });
}

Tensor neg(Tensor x) {
  return unary(
      "neg", x, [](auto x_i) { return -x_i; }, [](auto, auto) { return simd::all(-1); });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
