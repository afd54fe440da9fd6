// Batched product of matrices: [..., M, K] x [..., K, N] -> [..., M, N].
#include "autograd/error.h"
#include "autograd/kernels/batches.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL {

Tensor matmul(Tensor a, Tensor b) {
  Tape& tape = a.tape();
  if (a.rank() < 2 || b.rank() < 2)
    fail(tape, "matmul", "a is " + a.shape().str() + ", b is " + b.shape().str() + ": both need two axes",
         "reshape a vector to [1, K] or [K, 1]");
  const Index m = a.size(-2), k = a.size(-1), n = b.size(-1);
  if (b.size(-2) != k)
    fail(tape, "matmul", "inner widths differ: a is " + a.shape().str() + ", b is " + b.shape().str(),
         "a [..., M, K] needs b [..., K, N]; weights are stored [out, in]");
  const auto shared = broadcast(a.shape().first(a.rank() - 2), b.shape().first(b.rank() - 2));
  if (!shared)
    fail(tape, "matmul", "leading axes do not broadcast: a is " + a.shape().str() + ", b is " + b.shape().str(),
         "axes align at the end; sizes must be equal or 1");
  const Shape leading = *shared;
  a = with_unit_stride(a);
  b = with_unit_stride(b);

  const Batches in_a(a, leading), in_b(b, leading);
  const Index count = leading.numel();
  Tensor y = tape.result("matmul", leading.inserted(-1, m).inserted(-1, n), {a, b});
  for (Index i = 0; i < count; ++i)
    gemm_in_pieces(m, n, k, in_a(a.value(), i), in_b(b.value(), i), {y.value() + i * m * n, n}, false);

  // dA += dY B^T, dB += A^T dY; a broadcast operand gathers from every matrix it took part in.
  tape.on_backward(y, [=] {
    const Real* dy = y.grad();
    Real *da = a.grad_buffer(), *db = b.grad_buffer();
    for (Index i = 0; i < count; ++i) {
      const ConstMatrix g{dy + i * m * n, n, 1};
      if (da) add_product(m, k, n, g, in_b(b.value(), i).transposed(), da + in_a.offset(i), in_a);
      if (db) add_product(k, n, m, in_a(a.value(), i).transposed(), g, db + in_b.offset(i), in_b);
    }
  });
  return y;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
