// Mean squared error.
#include "autograd/kernels/strided.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL {

Tensor mse(Tensor prediction, Tensor target) {
  Tape& tape = prediction.tape();
  const Shape shape = prediction.shape();
  if (!(shape == target.shape()))
    fail(tape, "mse", "shapes differ: prediction " + shape.str() + ", target " + target.shape().str(),
         "they must be equal");
  const Index n = shape.numel();
  if (n == 0) fail(tape, "mse", "the mean over nothing, shape " + shape.str(), "give at least one element");
  prediction = contiguous(prediction);
  target = contiguous(target);
  Tensor y = tape.result("mse", {}, {prediction, target});
  const auto square = [](auto a, auto b) { return (a - b) * (a - b); };
  *y.value() = simd::sum(n, square, prediction.value(), target.value()) / static_cast<Real>(n);
  // dprediction += 2 (prediction - target) dy / n, dtarget the opposite
  tape.on_backward(y, [=] {
    const Real slope = 2 * *y.grad() / static_cast<Real>(n);
    const auto rule = [&](Tensor x, Tensor other) {
      if (Real* dx = x.grad_buffer())
        simd::accumulate(
            n, dx, [=](auto a, auto b) { return simd::all(slope) * (a - b); }, x.value(), other.value());
    };
    rule(prediction, target);
    rule(target, prediction);
  });
  return y;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
