// Dropout (Srivastava et al. 2014), scaled in training so that evaluation needs no change.
#include "autograd/kernels/keep.h"
#include "autograd/kernels/parallel.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL {

Tensor dropout(Tensor x, Real p) {
  Tape& tape = x.tape();
  if (!(p >= 0 && p < 1)) fail(tape, "dropout", "p is " + std::to_string(p), "0 <= p < 1");
  if (!tape.training) return x;
  const Keep random(tape, p);
  if (p == 0) return x;
  x = contiguous(x);
  Tensor y = tape.result("dropout", x.shape(), {x});
  const Index n = x.numel(), sequences = x.rank() > 0 ? std::max<Index>(x.size(0), 1) : 1;
  const auto first = static_cast<std::uint64_t>(tape.random.first_sequence * (n / sequences));
  bool* keep = tape.scratch<bool>(n);
  for_pieces(n, 8, [=, in = x.value(), out = y.value()](Index begin, Index end, Index) {
    random.for_each(first + static_cast<std::uint64_t>(begin), end - begin,
                    [keep, begin](Index i, bool stays) { keep[begin + i] = stays; });
    for (Index i = begin; i < end; ++i) out[i] = keep[i] ? random.factor * in[i] : 0;
  });
  // dx += dy / (1 - p) where kept
  tape.on_backward(y, [=, factor = random.factor] {
    Real* dx = x.grad_buffer();
    if (!dx) return;
    for_pieces(n, 1, [=, dy = y.grad()](Index begin, Index end, Index) {
      for (Index i = begin; i < end; ++i) dx[i] += keep[i] ? factor * dy[i] : 0;
    });
  });
  return y;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
