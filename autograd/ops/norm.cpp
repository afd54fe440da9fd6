// Normalisation over the last axis. The root is taken of variance + eps, so that a constant row has finite gradients.
// The variance is summed around the mean in a second pass: sum(x^2) / C - mean^2 cancels when the mean is large.
#include <cmath>

#include "autograd/ops/rows.h"

namespace tapehead::inline TAPEHEAD_REAL {

using simd::all;
using simd::Packet;
using simd::Strided;

namespace {

void check_width(const char* op, const char* what, Tensor x, Tensor p) {
  const Index width = x.size(axis_of(op, x, -1));
  if (p.defined() && p.shape() != Shape{width})
    fail(x.tape(), op, std::string(what) + " " + p.shape().str() + " for x " + x.shape().str(),
         "it has one element per channel");
}

/// p as a row, or `otherwise` in every channel.
Strided row_or(Tape& tape, Tensor p, Real otherwise) {
  if (p.defined()) return {p.value(), p.strides()[0]};
  Real* number = tape.scratch(1);
  *number = otherwise;
  return {number, 0};
}

/// p.grad += the sum over rows of f(offset of the row) in each channel, f giving a packet function's row operands.
/// Pieces of rows have sums of their own, which are added in order.
template <class F>
void sum_rows(Tensor p, const Shape& shape, F add_row) {
  Real* dp = p.defined() ? p.grad_buffer() : nullptr;
  const Index width = shape[-1], rows = width ? shape.numel() / width : 0;
  if (!dp || rows == 0) return;
  const Index pieces = piece_count(rows, 2 * width);
  Real* sums = p.tape().scratch(pieces * width);
  std::fill_n(sums, pieces * width, Real{0});
  for_pieces(rows, 2 * width, [=](Index begin, Index end, Index piece) {
    for (Index row = begin; row < end; ++row) add_row(sums + piece * width, row * width, row);
  });
  for (Index piece = 0; piece < pieces; ++piece)
    simd::accumulate(
        width, Strided{dp, p.strides()[0]}, [](Packet s) { return s; }, sums + piece * width);
}

}  // namespace

Tensor layer_norm(Tensor x, Tensor gain, Tensor bias, Real eps) {
  check_width("layer_norm", "gain", x, gain);
  check_width("layer_norm", "bias", x, bias);
  Tape& tape = x.tape();
  x = contiguous(x);
  const Shape shape = x.shape(), rows = shape.without(-1);
  const Index n = shape[-1];
  Tensor y = tape.result("layer_norm", shape, {x, gain.defined() ? gain : x, bias.defined() ? bias : x});
  Real* means = tape.saved("layer_norm.mean", rows).value();
  Real* rstds = tape.saved("layer_norm.rstd", rows).value();
  const Strided g = row_or(tape, gain, 1), b = row_or(tape, bias, 0);
  for_rows(shape, 4, [=, in = x.value(), out = y.value()](Index at, Index row) {
    const Real mean = means[row] = simd::total(n, in + at) / static_cast<Real>(n);
    const Packet m = all(mean);
    const Real variance = simd::sum(
                              n, [=](Packet v) { return (v - m) * (v - m); }, in + at) /
                          static_cast<Real>(n);
    const Packet r = all(rstds[row] = 1 / std::sqrt(variance + eps));
    const auto normalise = [=](Packet x_i, Packet g_i, Packet b_i) { return (x_i - m) * r * g_i + b_i; };
    simd::map(n, out + at, normalise, in + at, g, b);
  });
  // with h = (x - mean) rstd and u = dy gain:
  //   dx += rstd (u - mean(u) - h mean(u h)),   dgain += sum dy h,   dbias += sum dy
  tape.on_backward(y, [=] {
    const Real *in = x.value(), *dy = y.grad();
    if (Real* dx = x.grad_buffer())
      for_rows(shape, 6, [=](Index at, Index row) {
        const Packet m = all(means[row]), r = all(rstds[row]);
        const auto product = [](Packet dy_i, Packet g_i) { return dy_i * g_i; };
        const auto along = [=](Packet dy_i, Packet g_i, Packet x_i) { return dy_i * g_i * ((x_i - m) * r); };
        const Packet u = all(simd::sum(n, product, dy + at, g) / static_cast<Real>(n));
        const Packet uh = all(simd::sum(n, along, dy + at, g, in + at) / static_cast<Real>(n));
        const auto rule = [=](Packet dy_i, Packet g_i, Packet x_i) {
          return r * (dy_i * g_i - u - (x_i - m) * r * uh);
        };
        simd::accumulate(n, dx + at, rule, dy + at, g, in + at);
      });
    sum_rows(gain, shape, [=](Real* sums, Index at, Index row) {
      const Packet m = all(means[row]), r = all(rstds[row]);
      simd::accumulate(
          n, sums, [=](Packet dy_i, Packet x_i) { return dy_i * ((x_i - m) * r); }, dy + at, in + at);
    });
    sum_rows(bias, shape, [=](Real* sums, Index at, Index) {
      simd::accumulate(
          n, sums, [](Packet dy_i) { return dy_i; }, dy + at);
    });
  });
  return y;
}

Tensor rms_norm(Tensor x, Tensor gain, Real eps) {
  check_width("rms_norm", "gain", x, gain);
  Tape& tape = x.tape();
  x = contiguous(x);
  const Shape shape = x.shape();
  const Index n = shape[-1];
  Tensor y = tape.result("rms_norm", shape, {x, gain.defined() ? gain : x});
  Real* rrms = tape.saved("rms_norm.rrms", shape.without(-1)).value();
  const Strided g = row_or(tape, gain, 1);
  const auto product = [](Packet a, Packet b) { return a * b; };
  for_rows(shape, 3, [=, in = x.value(), out = y.value()](Index at, Index row) {
    const Real mean_square = simd::sum(n, product, in + at, in + at) / static_cast<Real>(n);
    const Packet r = all(rrms[row] = 1 / std::sqrt(mean_square + eps));
    simd::map(
        n, out + at, [=](Packet x_i, Packet g_i) { return x_i * r * g_i; }, in + at, g);
  });
  // with h = x rrms and u = dy gain:  dx += rrms (u - h mean(u h)),   dgain += sum dy h
  tape.on_backward(y, [=] {
    const Real *in = x.value(), *dy = y.grad();
    if (Real* dx = x.grad_buffer())
      for_rows(shape, 4, [=](Index at, Index row) {
        const Packet r = all(rrms[row]);
        const auto along = [=](Packet dy_i, Packet g_i, Packet x_i) { return dy_i * g_i * (x_i * r); };
        const Packet uh = all(simd::sum(n, along, dy + at, g, in + at) / static_cast<Real>(n));
        const auto rule = [=](Packet dy_i, Packet g_i, Packet x_i) { return r * (dy_i * g_i - x_i * r * uh); };
        simd::accumulate(n, dx + at, rule, dy + at, g, in + at);
      });
    sum_rows(gain, shape, [=](Real* sums, Index at, Index row) {
      const Packet r = all(rrms[row]);
      simd::accumulate(
          n, sums, [=](Packet dy_i, Packet x_i) { return dy_i * (x_i * r); }, dy + at, in + at);
    });
  });
  return y;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
