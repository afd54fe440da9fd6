// Other views of the same numbers. A view shares its owner's memory, values and gradients alike, so it has no backward
// rule; only concat and contiguous copy.
#include <optional>

#include "autograd/error.h"
#include "autograd/kernels/strided.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

/// Strides that read x under another shape with as many elements, if there are any: each axis of the new shape must
/// lie within one stretch of axes of x that are evenly spaced in memory.
std::optional<Strides> view_strides(Tensor x, const Shape& shape) {
  if (shape.numel() == 0) return shape.row_major();
  const Loops<1> stretches(x.shape(), {x.strides()});
  std::size_t stretch = stretches.rank - 1;
  Index inside = 1;  // elements of the stretch that the axes so far, from the last, step over
  Strides strides{};
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] != 1 && inside == stretches.size[stretch]) {
      --stretch;
      inside = 1;
    }
    if (stretches.size[stretch] % (inside * shape[axis]) != 0) return {};
    strides[static_cast<std::size_t>(axis)] = inside * stretches.step[stretch][0];
    inside *= shape[axis];
  }
  return strides;
}

void copy(const Shape& shape, const Operand& to, const Operand& from) {
  map(
      shape, [](auto v) { return v; }, to, from);
}
void add_to(const Shape& shape, const Operand& to, const Operand& from) {
  accumulate(
      shape, [](auto v) { return v; }, to, from);
}

}  // namespace

Tensor reshape(Tensor x, const Shape& shape) {
  if (shape.numel() != x.numel())
    fail(x.tape(), "reshape",
         x.shape().str() + " has " + std::to_string(x.numel()) + " elements, " + shape.str() + " has " +
             std::to_string(shape.numel()),
         "keep the number of elements");
  if (const auto strides = view_strides(x, shape)) return x.tape().view("reshape", x, shape, *strides, 0);
  return reshape(contiguous(x), shape);
}

Tensor reshape(Tensor x, std::initializer_list<Index> sizes) {
  std::array<Index, kMaxRank> known{};
  const auto rank = sizes.size();
  if (rank > kMaxRank) return reshape(x, Shape(sizes));  // throws
  std::copy(sizes.begin(), sizes.end(), known.begin());
  const auto open = std::find(known.begin(), known.begin() + rank, -1);
  if (open == known.begin() + rank) return reshape(x, Shape(sizes));
  if (std::find(open + 1, known.begin() + rank, -1) != known.begin() + rank)
    fail(x.tape(), "reshape", "two sizes are -1", "leave one size to be computed");
  *open = 1;
  const Shape others(known.data(), static_cast<int>(rank));
  if (others.numel() == 0 || x.numel() % others.numel() != 0)
    fail(x.tape(), "reshape",
         "the " + std::to_string(x.numel()) + " elements of " + x.shape().str() + " do not divide by the " +
             std::to_string(others.numel()) + " of the other axes",
         "name every size");
  *open = x.numel() / others.numel();
  return reshape(x, Shape(known.data(), static_cast<int>(rank)));
}

Tensor permute(Tensor x, std::initializer_list<int> axes) {
  const Shape& from = x.shape();
  std::array<Index, kMaxRank> sizes{};
  Strides strides{};
  unsigned seen = 0;
  std::size_t to = 0;
  for (int axis : axes) {
    const int a = axis_of("permute", x, axis);
    if (seen >> a & 1)
      fail(x.tape(), "permute", "axis " + std::to_string(axis) + " occurs twice", "name each axis once");
    seen |= 1u << a;
    sizes[to] = from[a];
    strides[to++] = x.strides()[static_cast<std::size_t>(a)];
  }
  if (static_cast<int>(to) != from.rank())
    fail(x.tape(), "permute", std::to_string(to) + " axes for shape " + from.str(), "name each axis once");
  return x.tape().view("permute", x, Shape(sizes.data(), from.rank()), strides, 0);
}

Tensor transpose(Tensor x, int a, int b) {
  const Shape& from = x.shape();
  a = axis_of("transpose", x, a);
  b = axis_of("transpose", x, b);
  Strides strides = x.strides();
  std::swap(strides[static_cast<std::size_t>(a)], strides[static_cast<std::size_t>(b)]);
  return x.tape().view("transpose", x, from.with(a, from[b]).with(b, from[a]), strides, 0);
}

Tensor slice(Tensor x, int axis, Index begin, Index end) {
  axis = axis_of("slice", x, axis);
  const Index size = x.size(axis);
  if (begin < 0 || begin > end || end > size)
    fail(x.tape(), "slice",
         "range " + std::to_string(begin) + " .. " + std::to_string(end) + " of axis " + std::to_string(axis) +
             " in shape " + x.shape().str(),
         "0 <= begin <= end <= size");
  const Index step = x.strides()[static_cast<std::size_t>(axis)];
  return x.tape().view("slice", x, x.shape().with(axis, end - begin), x.strides(), begin * step);
}

Tensor concat(std::initializer_list<Tensor> xs, int axis) { return concat(std::span(xs.begin(), xs.size()), axis); }

Tensor concat(std::span<const Tensor> xs, int axis) {
  if (xs.empty()) throw ShapeError(error_line("concat", "nothing to join", {}, "give at least one tensor"));
  Tape& tape = xs[0].tape();
  const Shape& first = xs[0].shape();
  axis = axis_of("concat", xs[0], axis);
  Tensor leader = xs[0];  // one that requires a gradient, if any does
  Index total = 0;
  for (const Tensor& x : xs) {
    if (x.rank() != first.rank() || !(x.shape().with(axis, 0) == first.with(axis, 0)))
      fail(tape, "concat",
           "shapes differ beside axis " + std::to_string(axis) + ": " + first.str() + " and " + x.shape().str(),
           "all other sizes must be equal");
    if (&x.tape() != &tape) fail(tape, "concat", "inputs lie on different tapes", "make all of them on one tape");
    if (x.requires_grad()) leader = x;
    total += x.size(axis);
  }
  Tensor y = tape.result("concat", first.with(axis, total), {leader});
  const Index step = y.strides()[static_cast<std::size_t>(axis)];
  Real* part = y.value();
  for (const Tensor& x : xs) {
    copy(x.shape(), {part, y.strides()}, value_of(x, x.shape()));
    part += x.size(axis) * step;
  }
  const auto count = static_cast<Index>(xs.size());
  auto* inputs = tape.scratch<Tensor>(count);
  std::copy(xs.begin(), xs.end(), inputs);
  // dx_i += the part of dy that is x_i's
  tape.on_backward(y, [=] {
    Real* dy = y.grad();
    for (Index i = 0; i < count; ++i) {
      const Tensor x = inputs[i];
      if (Real* dx = x.grad_buffer()) add_to(x.shape(), {dx, x.strides()}, {dy, y.strides()});
      dy += x.size(axis) * step;
    }
  });
  return y;
}

Tensor contiguous(Tensor x) {
  if (x.contiguous()) return x;
  Tensor y = x.tape().result("contiguous", x.shape(), {x});
  copy(x.shape(), value_of(y, x.shape()), value_of(x, x.shape()));
  // dx += dy
  x.tape().on_backward(y, [=] {
    if (Real* dx = x.grad_buffer()) add_to(x.shape(), {dx, x.strides()}, {y.grad(), y.strides()});
  });
  return y;
}

Tensor detach(Tensor x) {
  NoGrad no_grad(x.tape());
  return x.tape().view("detach", x, x.shape(), x.strides(), 0);
}

}  // namespace tapehead::inline TAPEHEAD_REAL
