// Sums, means, maxima and logarithms of sums of exponentials, along one axis or over everything.
#include <cmath>

#include "autograd/kernels/simd_math.h"
#include "autograd/kernels/strided.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

Shape reduced(const Shape& shape, int axis, bool keep_axis) {
  return keep_axis ? shape.with(axis, 1) : shape.without(axis);
}

/// x with `axis`, from 0, moved to the end, in rows without gaps. The other axes keep their order.
Tensor axis_last(Tensor x, int axis) {
  for (int a = axis; a + 1 < x.rank(); ++a) x = transpose(x, a, a + 1);
  return contiguous(x);
}

void refuse_empty(const char* op, Tensor x, Index count) {
  if (count == 0)
    fail(x.tape(), op, "nothing to reduce in shape " + x.shape().str(), "give at least one element along the axis");
}

/// y = sum of x over the axes along which y's strides, under x's shape, are 0.
Tensor sum_to(Tensor x, const Shape& shape, const Strides& strides) {
  Tape& tape = x.tape();
  Tensor y = tape.result("sum", shape, {x});
  const auto itself = [](auto v) { return v; };
  std::fill_n(y.value(), y.numel(), Real{0});
  accumulate(x.shape(), itself, {y.value(), strides}, value_of(x, x.shape()));
  // dx += dy, repeated along those axes
  tape.on_backward(y, [=] {
    if (Real* dx = x.grad_buffer()) accumulate(x.shape(), itself, {dx, x.strides()}, Operand{y.grad(), strides});
  });
  return y;
}

}  // namespace

Tensor sum(Tensor x) { return sum_to(x, {}, {}); }

Tensor sum(Tensor x, int axis, bool keep_axis) {
  axis = axis_of("sum", x, axis);
  const Shape kept = x.shape().with(axis, 1);
  return sum_to(x, reduced(x.shape(), axis, keep_axis), broadcast_strides(kept, kept.row_major(), x.shape()));
}

Tensor mean(Tensor x) {
  refuse_empty("mean", x, x.numel());
  return scale(sum(x), 1 / static_cast<Real>(x.numel()));
}

Tensor mean(Tensor x, int axis, bool keep_axis) {
  axis = axis_of("mean", x, axis);
  refuse_empty("mean", x, x.size(axis));
  return scale(sum(x, axis, keep_axis), 1 / static_cast<Real>(x.size(axis)));
}

Tensor max(Tensor x, int axis, bool keep_axis) {
  axis = axis_of("max", x, axis);
  const Index n = x.size(axis);
  refuse_empty("max", x, n);
  Tape& tape = x.tape();
  const Shape shape = reduced(x.shape(), axis, keep_axis);
  const Tensor rows = axis_last(x, axis);
  Tensor y = tape.result("max", shape, {rows});
  const Index count = y.numel();
  auto* largest = tape.scratch<Index>(count);
  const Real* in = rows.value();
  for (Index r = 0; r < count; ++r) {
    const Real* row = in + r * n;
    Index best = 0;
    for (Index i = 1; i < n; ++i)
      if (row[i] > row[best] || std::isnan(row[i])) best = i;
    y.value()[r] = row[best];
    largest[r] = best;
  }
  // dx_i += dy where x_i was chosen
  tape.on_backward(y, [=] {
    Real* dx = rows.grad_buffer();
    if (!dx) return;
    const Real* dy = y.grad();
    for (Index r = 0; r < count; ++r) dx[r * n + largest[r]] += dy[r];
  });
  return y;
}

Tensor logsumexp(Tensor x, int axis, bool keep_axis) {
  constexpr Real kMinusInfinity = -std::numeric_limits<Real>::infinity();
  using simd::Packet;
  axis = axis_of("logsumexp", x, axis);
  const Index n = x.size(axis);
  Tape& tape = x.tape();
  const Shape shape = reduced(x.shape(), axis, keep_axis);
  const Tensor rows = axis_last(x, axis);
  Tensor y = tape.result("logsumexp", shape, {rows});
  const Index count = y.numel();
  const Real* in = rows.value();
  Real* out = y.value();
  for_pieces(count, 4 * n, [=](Index begin, Index end, Index) {
    for (Index r = begin; r < end; ++r) {
      const Real largest = simd::max(n, in + r * n);  // around it nothing overflows
      out[r] = std::isinf(largest) ? largest : largest + std::log(simd::sum_exp(n, in + r * n, largest));
    }
  });
  // dx += dy exp(x_i - largest) / sum_j exp(x_j - largest): finer than exp(x - y) where |y| is large
  tape.on_backward(y, [=] {
    Real* dx = rows.grad_buffer();
    if (!dx) return;
    const Real* dy = y.grad();
    const Real* in_rows = rows.value();
    for_pieces(count, 8 * n, [=](Index begin, Index end, Index) {
      for (Index r = begin; r < end; ++r) {
        const Real* row = in_rows + r * n;
        const Real largest = simd::max(n, row);
        if (largest == kMinusInfinity) continue;  // no element moves the result
        const Packet shift = simd::all(largest), slope = simd::all(dy[r] / simd::sum_exp(n, row, largest));
        simd::accumulate(
            n, dx + r * n, [=](Packet v) { return slope * simd::exp(v - shift); }, row);
      }
    });
  });
  return y;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
