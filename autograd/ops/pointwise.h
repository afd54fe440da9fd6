// Ops that act on each element alone: one template for one operand, one for two that broadcast.
#pragma once

#include "autograd/kernels/strided.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// y = f(x), dx += dy g(x, y); f and g act on packets.
template <class F, class G>
Tensor unary(const char* op, Tensor x, F f, G g) {
  Tape& tape = x.tape();
  const Shape shape = x.shape();
  Tensor y = tape.result(op, shape, {x});
  map(shape, f, value_of(y, shape), value_of(x, shape));
  tape.on_backward(y, [=] {
    if (Real* dx = x.grad_buffer())
      accumulate(
          x.shape(), [=](auto dy_i, auto x_i, auto y_i) { return dy_i * g(x_i, y_i); }, operand(x, dx, x.shape()),
          operand(y, y.grad(), x.shape()), value_of(x, x.shape()), value_of(y, x.shape()));
  });
  return y;
}

/// y = f(a, b), da += dy ga(a, b), db += dy gb(a, b), summed over the axes that repeat.
template <class F, class Ga, class Gb>
Tensor binary(const char* op, Tensor a, Tensor b, F f, Ga ga, Gb gb) {
  Tape& tape = a.tape();
  const Shape shape = broadcast_shapes(tape, op, a.shape(), b.shape());
  Tensor y = tape.result(op, shape, {a, b});
  map(shape, f, value_of(y, shape), value_of(a, shape), value_of(b, shape));
  tape.on_backward(y, [=] {
    const Shape all = y.shape();
    const auto rule = [&](Tensor x, auto g) {
      if (Real* dx = x.grad_buffer())
        accumulate(
            all, [=](auto dy_i, auto a_i, auto b_i) { return dy_i * g(a_i, b_i); }, operand(x, dx, all),
            operand(y, y.grad(), all), value_of(a, all), value_of(b, all));
    };
    rule(a, ga);
    rule(b, gb);
  });
  return y;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
