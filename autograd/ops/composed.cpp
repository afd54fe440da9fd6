// The fused ops once more, each as its definition in primitive ops. Tests hold value and gradient of both together.
#include <numbers>

#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL::composed {

namespace {

Tensor number(Tensor like, Real value) { return like.tape().scalar(value); }

// x^(-1/2) = exp(-log(x) / 2), for x > 0
Tensor inverse_root(Tensor x) { return tapehead::exp(scale(log(x), Real(-0.5))); }

Tensor affine(Tensor x, Tensor gain, Tensor bias) {
  if (gain.defined()) x = x * gain;
  return bias.defined() ? x + bias : x;
}

}  // namespace

Tensor softmax(Tensor x) {
  const Tensor e = exp(x - detach(max(x, -1, true)));  // the shift cancels, and so does its gradient
  return e / sum(e, -1, true);
}

Tensor log_softmax(Tensor x) { return x - logsumexp(x, -1, true); }

Tensor linear(Tensor x, Tensor weight, Tensor bias) {
  if (x.shape().rank() == 1) return reshape(composed::linear(reshape(x, {1, -1}), weight, bias), {-1});
  const Tensor y = matmul(x, transpose(weight));
  return bias.defined() ? y + bias : y;
}

Tensor layer_norm(Tensor x, Tensor gain, Tensor bias, Real eps) {
  const Tensor centred = x - mean(x, -1, true);
  const Tensor variance = mean(centred * centred, -1, true);
  return affine(centred * inverse_root(variance + number(x, eps)), gain, bias);
}

Tensor rms_norm(Tensor x, Tensor gain, Real eps) {
  return affine(x * inverse_root(mean(x * x, -1, true) + number(x, eps)), gain, {});
}

// x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3)
Tensor gelu(Tensor x, Gelu form) {
  if (form == Gelu::exact)
    fail(x.tape(), "composed::gelu", "there is no primitive op for erf", "compare the tanh form");
  constexpr Real kC = std::numbers::sqrt2_v<Real> * std::numbers::inv_sqrtpi_v<Real>;
  const Tensor u = scale(x + scale(x * x * x, Real(0.044715)), kC);
  return scale(x * (number(x, 1) + tanh(u)), Real(0.5));
}

Tensor silu(Tensor x) { return x * sigmoid(x); }

Tensor cross_entropy(Tensor logits, Ids targets, const CrossEntropy& options) {
  Tape& tape = logits.tape();
  const Index count = targets.numel(), classes = logits.size(-1);
  const Real e = options.label_smoothing;
  Real* q = tape.scratch(count * classes);  // the target distributions; all 0 where ignored
  Index counted = 0;
  for (Index i = 0; i < count; ++i) {
    const std::int32_t target = targets.data()[i];
    const bool counts = target != options.ignore;
    std::fill_n(q + i * classes, classes, counts ? e / static_cast<Real>(classes) : 0);
    if (counts) q[i * classes + target] += 1 - e;
    counted += counts;
  }
  const Index divisor = std::max<Index>(options.divisor ? options.divisor : counted, 1);
  const Tensor distribution = tape.input(logits.shape(), {q, static_cast<std::size_t>(count * classes)});
  return scale(sum(distribution * composed::log_softmax(logits)), -1 / static_cast<Real>(divisor));
}

Tensor mse(Tensor prediction, Tensor target) {
  const Tensor difference = prediction - target;
  return mean(difference * difference);
}

}  // namespace tapehead::inline TAPEHEAD_REAL::composed
