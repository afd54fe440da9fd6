// Rotary positions (Su et al. 2021, RoFormer, section 3.2.2, eq. 34).
#include "autograd/kernels/batches.h"
#include "autograd/kernels/parallel.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

// to (+)= each pair (a, b) of the row turned by its angle, forwards (sign 1) or back (sign -1); the rest as it is.
template <bool add>
void turn(Index pairs, Index width, const Real* rotation, Real sign, const Real* from, Real* to) {
  const auto put = [to](Index i, Real x) { to[i] = add ? to[i] + x : x; };
  for (Index i = 0; i < pairs; ++i) {
    const Real cosine = rotation[2 * i], sine = sign * rotation[2 * i + 1], a = from[2 * i], b = from[2 * i + 1];
    put(2 * i, a * cosine - b * sine);
    put(2 * i + 1, a * sine + b * cosine);
  }
  for (Index i = 2 * pairs; i < width; ++i) put(i, from[i]);
}

}  // namespace

Tensor rope(Tensor x, Tensor rotation) {
  Tape& tape = x.tape();
  const Shape shape = x.shape();
  if (shape.rank() < 2) fail(tape, "rope", "x is " + shape.str(), "it needs two axes: positions and features");
  const Index T = shape[-2], D = shape[-1];
  if (rotation.rank() != 3 || rotation.size(0) != T || 2 * rotation.size(1) > D || rotation.size(2) != 2)
    fail(tape, "rope", "rotation is " + rotation.shape().str() + " for x " + shape.str(),
         "it is [T, pairs, 2]: cos and sin for each position and pair of channels");
  x = with_dense_rows(x);
  rotation = contiguous(rotation);
  const Index pairs = rotation.size(1), rows = D ? shape.numel() / D : 0;
  const Shape leading = shape.first(shape.rank() - 2);
  const Tensor y = tape.result("rope", shape, dense_like(x, shape), {x});
  const Batches in_x(x, leading), in_y(y, leading);
  const Real* angles = rotation.value();
  // f(row of the angles, offset in x, offset in y) for every row
  const auto for_rows = [=](auto f) {
    for_pieces(rows, 2 * D, [=](Index begin, Index end, Index) {
      for (Index row = begin; row < end; ++row)
        f(angles + row % T * 2 * pairs, in_x.offset(row / T) + row % T * in_x.row,
          in_y.offset(row / T) + row % T * in_y.row);
    });
  };
  for_rows([=, from = x.value(), to = y.value()](const Real* r, Index at_x, Index at_y) {
    turn<false>(pairs, D, r, 1, from + at_x, to + at_y);
  });
  // dx += dy turned back
  tape.on_backward(y, [=] {
    if (Real* dx = x.grad_buffer())
      for_rows([=, dy = y.grad()](const Real* r, Index at_x, Index at_y) {
        turn<true>(pairs, D, r, -1, dy + at_y, dx + at_x);
      });
  });
  return y;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
