// Softmax and its logarithm over the last axis (Bridle 1990). The row's largest element is subtracted first, so that
// no exponential overflows. A row of -infinity alone has no softmax (0 / 0 gives NaN): attention refuses it by name.
#include <cmath>

#include "autograd/ops/rows.h"

namespace tapehead::inline TAPEHEAD_REAL {

using simd::all;
using simd::Packet;

Tensor softmax(Tensor x) {
  const Index n = x.size(axis_of("softmax", x, -1));
  x = contiguous(x);
  Tensor y = x.tape().result("softmax", x.shape(), {x});
  for_rows(x.shape(), 8,
           [n, in = x.value(), out = y.value()](Index at, Index) { simd::softmax(n, in + at, out + at); });
  // dx_i += y_i (dy_i - sum_j dy_j y_j)
  x.tape().on_backward(y, [=] {
    Real* dx = x.grad_buffer();
    if (!dx) return;
    for_rows(x.shape(), 4, [n, dx, y_all = y.value(), dy_all = y.grad()](Index at, Index) {
      const Real *p = y_all + at, *dy = dy_all + at;
      const Packet dot = all(simd::sum(
          n, [](Packet a, Packet b) { return a * b; }, dy, p));
      simd::accumulate(
          n, dx + at, [=](Packet y_i, Packet dy_i) { return y_i * (dy_i - dot); }, p, dy);
    });
  });
  return y;
}

Tensor log_softmax(Tensor x) {
  const Index n = x.size(axis_of("log_softmax", x, -1));
  x = contiguous(x);
  Tensor y = x.tape().result("log_softmax", x.shape(), {x});
  for_rows(x.shape(), 8, [n, in = x.value(), out = y.value()](Index at, Index) {
    const Real largest = simd::max(n, in + at);
    const Packet shift = all(largest), log_sum = all(std::log(simd::sum_exp(n, in + at, largest)));
    simd::map(
        n, out + at, [=](Packet x_i) { return (x_i - shift) - log_sum; }, in + at);
  });
  // dx_i += dy_i - exp(y_i) sum_j dy_j
  x.tape().on_backward(y, [=] {
    Real* dx = x.grad_buffer();
    if (!dx) return;
    for_rows(x.shape(), 8, [n, dx, y_all = y.value(), dy_all = y.grad()](Index at, Index) {
      const Packet total = all(simd::total(n, dy_all + at));
      const auto rule = [=](Packet y_i, Packet dy_i) { return dy_i - simd::exp(y_i) * total; };
      simd::accumulate(n, dx + at, rule, y_all + at, dy_all + at);
    });
  });
  return y;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
