// Choice between two values by a mask, with broadcasting. What is not chosen may be infinite or NaN: it touches
// neither the result nor a gradient.
#include "autograd/kernels/strided.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

Strides mask_strides(const Bools& mask, const Shape& shape) {
  return broadcast_strides(mask.shape(), mask.shape().row_major(), shape);
}

/// dx += dy where mask == side
void choose_gradient(Tensor x, Tensor y, const bool* mask, const Strides& mask_steps, bool side) {
  Real* dx = x.grad_buffer();
  if (!dx) return;
  const Real* dy = y.grad();
  const Strides x_steps = broadcast_strides(x.shape(), x.strides(), y.shape());
  walk<3>(y.shape(), {x_steps, y.strides(), mask_steps}, [=](const auto& at, Index count, const auto& step) {
    for (Index i = 0; i < count; ++i)
      dx[at[0] + i * step[0]] += mask[at[2] + i * step[2]] == side ? dy[at[1] + i * step[1]] : 0;
  });
}

}  // namespace

Tensor where(Bools condition, Tensor a, Tensor b) {
  Tape& tape = a.tape();
  const Shape values = broadcast_shapes(tape, "where", a.shape(), b.shape());
  const Shape shape = broadcast_shapes(tape, "where", condition.shape(), values);
  const bool* mask = condition.data();
  const Strides mask_steps = mask_strides(condition, shape);
  Tensor y = tape.result("where", shape, {a, b});
  const Operand out = value_of(y, shape), yes = value_of(a, shape), no = value_of(b, shape);
  walk<4>(shape, {out.strides, yes.strides, no.strides, mask_steps},
          [=](const auto& at, Index count, const auto& step) {
            for (Index i = 0; i < count; ++i)
              out.data[at[0] + i * step[0]] =
                  mask[at[3] + i * step[3]] ? yes.data[at[1] + i * step[1]] : no.data[at[2] + i * step[2]];
          });
  // da += dy where the condition holds, db += dy elsewhere
  tape.on_backward(y, [=] {
    choose_gradient(a, y, mask, mask_steps, true);
    choose_gradient(b, y, mask, mask_steps, false);
  });
  return y;
}

Tensor masked_fill(Tensor x, Bools keep, Real value) {
  Tape& tape = x.tape();
  const Shape shape = x.shape();
  if (!(broadcast_shapes(tape, "masked_fill", keep.shape(), shape) == shape))
    fail(tape, "masked_fill", "the mask " + keep.shape().str() + " is larger than x " + shape.str(),
         "the mask must broadcast to x");
  const bool* mask = keep.data();
  const Strides mask_steps = mask_strides(keep, shape);
  Tensor y = tape.result("masked_fill", shape, {x});
  const Operand out = value_of(y, shape), in = value_of(x, shape);
  walk<3>(shape, {out.strides, in.strides, mask_steps}, [=](const auto& at, Index count, const auto& step) {
    for (Index i = 0; i < count; ++i)
      out.data[at[0] + i * step[0]] = mask[at[2] + i * step[2]] ? in.data[at[1] + i * step[1]] : value;
  });
  // dx += dy where kept
  tape.on_backward(y, [=] { choose_gradient(x, y, mask, mask_steps, true); });
  return y;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
