// Dropout (Srivastava et al. 2014), scaled in training so that evaluation needs no change.
//
// Whether an element stays is a function of (seed, step, ordinal of this op in the pass, element's number in the whole
// batch): the same in float and double, for any number of shards and threads.
#include "autograd/kernels/parallel.h"
#include "autograd/ops.h"
#include "autograd/rng.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

/// keep[i] says whether element first + i stays: its 32 bits are at least `threshold`, p in units of 2^-32.
void draw(const rng::Stream& stream, std::uint64_t first, Index count, std::uint32_t threshold, bool* keep) {
  for (Index i = 0; i < count;) {
    const std::uint64_t at = first + static_cast<std::uint64_t>(i);
    const auto words = stream.block(at / 4);
    for (std::size_t w = at % 4; w < 4 && i < count; ++w) keep[i++] = words[w] >= threshold;
  }
}

}  // namespace

Tensor dropout(Tensor x, Real p) {
  Tape& tape = x.tape();
  if (!(p >= 0 && p < 1)) fail(tape, "dropout", "p is " + std::to_string(p), "0 <= p < 1");
  if (!tape.training) return x;
  const rng::Stream stream(tape.random.seed, rng::Purpose::dropout, tape.random.step, tape.next_ordinal());
  if (p == 0) return x;
  x = contiguous(x);
  Tensor y = tape.result("dropout", x.shape(), {x});
  const Index n = x.numel(), sequences = x.rank() > 0 ? std::max<Index>(x.size(0), 1) : 1;
  const auto first = static_cast<std::uint64_t>(tape.random.first_sequence * (n / sequences));
  const double share =
      std::min(static_cast<double>(static_cast<float>(p)), 1 - 0x1p-32);  // as float in both precisions
  const auto threshold = static_cast<std::uint32_t>(share * 0x1p32);
  const Real factor = 1 / (1 - p);
  bool* keep = tape.scratch<bool>(n);
  for_pieces(n, 8, [=, in = x.value(), out = y.value()](Index begin, Index end, Index) {
    draw(stream, first + static_cast<std::uint64_t>(begin), end - begin, threshold, keep + begin);
    for (Index i = begin; i < end; ++i) out[i] = keep[i] ? factor * in[i] : 0;
  });
  // dx += dy / (1 - p) where kept
  tape.on_backward(y, [=] {
    Real* dx = x.grad_buffer();
    if (!dx) return;
    for_pieces(n, 1, [=, dy = y.grad()](Index begin, Index end, Index) {
      for (Index i = begin; i < end; ++i) dx[i] += keep[i] ? factor * dy[i] : 0;
    });
  });
  return y;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
