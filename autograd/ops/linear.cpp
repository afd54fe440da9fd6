// Linear layer as one op: y = x W^T + b, the product of a model that costs most.
#include <algorithm>

#include "autograd/error.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/parallel.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL {

Tensor linear(Tensor x, Tensor weight, Tensor bias) {
  Tape& tape = x.tape();
  if (weight.rank() != 2 || x.rank() < 1 || x.size(-1) != weight.size(1))
    fail(tape, "linear", "x is " + x.shape().str() + ", weight is " + weight.shape().str(),
         "x [..., in] needs a weight [out, in]");
  const Index in = weight.size(1), out = weight.size(0);
  if (bias.defined() && bias.shape() != Shape{out})
    fail(tape, "linear", "bias is " + bias.shape().str() + ", weight is " + weight.shape().str(),
         "a bias has one number per row of the weight");
  x = contiguous(x);
  weight = contiguous(weight);
  if (bias.defined()) bias = contiguous(bias);

  Index rows = 1;
  for (int i = 0; i < x.rank() - 1; ++i) rows *= x.size(i);
  const Shape shape = x.shape().with(-1, out);
  Tensor y =
      bias.defined() ? tape.result("linear", shape, {x, weight, bias}) : tape.result("linear", shape, {x, weight});
  if (bias.defined()) {
    const Real* b = bias.value();
    Real* to = y.value();
    for (Index i = 0; i < rows; ++i) std::copy_n(b, out, to + i * out);
  }
  gemm_in_pieces(rows, out, in, {x.value(), in, 1}, {weight.value(), 1, in}, {y.value(), out}, bias.defined());

  // dx += dy W, dW += dy^T x, db += sum of dy's rows
  tape.on_backward(y, [=] {
    const Real* dy = y.grad();
    if (Real* dx = x.grad_buffer())
      gemm_in_pieces(rows, in, out, {dy, out, 1}, {weight.value(), in, 1}, {dx, in}, true);
    if (Real* dw = weight.grad_buffer())
      gemm_in_pieces(out, in, rows, {dy, 1, out}, {x.value(), in, 1}, {dw, in}, true);
    if (Real* db = bias.defined() ? bias.grad_buffer() : nullptr)
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < out; ++j) db[j] += dy[i * out + j];
  });
  return y;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
