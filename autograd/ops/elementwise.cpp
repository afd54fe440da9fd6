// Functions of one number, applied to every element. In the rules x is the input's element and y the result's.
#include "autograd/kernels/simd_math.h"
#include "autograd/ops/pointwise.h"

namespace tapehead::inline TAPEHEAD_REAL {

using simd::all;
using simd::Packet;

// y' = y
Tensor exp(Tensor x) {
  return unary(
      "exp", x, [](Packet x_i) { return simd::exp(x_i); }, [](Packet, Packet y_i) { return y_i; });
}

// y' = 1 / x
Tensor log(Tensor x) {
  return unary(
      "log", x, [](Packet x_i) { return simd::log(x_i); }, [](Packet x_i, Packet) { return all(1) / x_i; });
}

// y' = 1 - y^2
Tensor tanh(Tensor x) {
  const auto slope = [](Packet, Packet y_i) { return all(1) - y_i * y_i; };
  return unary(
      "tanh", x, [](Packet x_i) { return simd::tanh(x_i); }, slope);
}

// y' = y (1 - y)
Tensor sigmoid(Tensor x) {
  const auto slope = [](Packet, Packet y_i) { return y_i * (all(1) - y_i); };
  return unary(
      "sigmoid", x, [](Packet x_i) { return simd::sigmoid(x_i); }, slope);
}

// y' = 1 where x > 0, else 0
Tensor relu(Tensor x) {
  const auto slope = [](Packet x_i, Packet) { return simd::where_less(all(0), x_i, all(1), all(0)); };
  return unary(
      "relu", x, [](Packet x_i) { return simd::where_less(x_i, all(0), all(0), x_i); }, slope);
}

namespace {

// The tanh form: x sigmoid(2 u) with u = c (x + a x^3), as (1 + tanh u) / 2 = sigmoid(2 u)
constexpr Real kC2 = 2 * std::numbers::sqrt2_v<Real> * std::numbers::inv_sqrtpi_v<Real>;
constexpr Real kA = Real(0.044715);
Packet tanh_gate(Packet x) { return simd::sigmoid(all(kC2) * x * (all(1) + all(kA) * x * x)); }

}  // namespace

// exact: y' = Phi(x) + x Phi'(x);  tanh: s = sigmoid(2 u), y' = s + x s (1 - s) 2 u'
Tensor gelu(Tensor x, Gelu form) {
  if (form == Gelu::exact)
    return unary(
        "gelu", x, [](Packet x_i) { return x_i * simd::normal(x_i).cdf; },
        [](Packet x_i, Packet) {
          constexpr Real kInverseRoot2Pi = std::numbers::inv_sqrtpi_v<Real> * std::numbers::sqrt2_v<Real> / 2;
          const simd::Normal at = simd::normal(x_i);
          return at.cdf + all(kInverseRoot2Pi) * x_i * at.bell;
        });
  const auto slope = [](Packet x_i, Packet) {
    const Packet s = tanh_gate(x_i), du = all(kC2) * (all(1) + all(3 * kA) * x_i * x_i);
    return s + x_i * s * (all(1) - s) * du;
  };
  return unary(
      "gelu", x, [](Packet x_i) { return x_i * tanh_gate(x_i); }, slope);
}

// s = sigmoid(x): y' = s (1 + x (1 - s))
Tensor silu(Tensor x) {
  const auto slope = [](Packet x_i, Packet) {
    const Packet s = simd::sigmoid(x_i);
    return s * (all(1) + x_i * (all(1) - s));
  };
  return unary(
      "silu", x, [](Packet x_i) { return x_i * simd::sigmoid(x_i); }, slope);
}

}  // namespace tapehead::inline TAPEHEAD_REAL
