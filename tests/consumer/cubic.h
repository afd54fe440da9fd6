// An op and a module made outside Tapehead, with nothing but its public headers.
#pragma once

#include <tapehead/tapehead.h>

namespace tapehead::inline TAPEHEAD_REAL {

/// x^3, element by element.
inline Tensor cube(Tensor any_x) {
  const Tensor x = contiguous(any_x);
  const Tensor y = x.tape().result("cube", x.shape(), {x});
  const Real* in = x.value();
  Real* out = y.value();
  const Index count = x.numel();
  for (Index i = 0; i < count; ++i) out[i] = in[i] * in[i] * in[i];

  // dx = 3 x^2 dy
  x.tape().on_backward(y, [=] {
    Real* dx = x.grad_buffer();
    const Real* dy = y.grad();
    for (Index i = 0; i < count; ++i) dx[i] += 3 * in[i] * in[i] * dy[i];
  });
  return y;
}

/// cube(x W^T + b): x [N, in] -> [N, out].
struct Cubic {
  Parameter weight, bias;

  Cubic(ParameterSet& set, Index in, Index out) : weight(set.add({out, in})), bias(set.add({out})) {}
  Tensor operator()(Tensor x) const { return cube(linear(x, x.tape().param(weight), x.tape().param(bias))); }
  template <class V>
  void visit(V& v) const {
    v("weight", weight);
    v("bias", bias);
  }
};

}  // namespace tapehead::inline TAPEHEAD_REAL
