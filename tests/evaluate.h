// Runs a function on a tape, packed or strided, and compares values and gradients with a reference.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "autograd/gradcheck.h"
#include "autograd/kernels/runs.h"
#include "autograd/rng.h"
#include "tests/reference.h"

namespace tapehead::test {

using namespace reference;

inline constexpr bool kDouble = sizeof(Real) == 8;
inline constexpr double kValueTolerance = kDouble ? 1e-13 : 1e-5;
inline constexpr double kGradTolerance = kDouble ? 1e-9 : 1e-4;  // differences in double reach no further

enum class Layout { packed, strided };

struct Outcome {
  Array y{Shape{}};
  std::vector<double> seed;  // s of L = <s, y>
  Arrays grads;              // dL/dx
};

inline Array as_array(const Shape& shape, const std::vector<Real>& values) {
  Array a(shape);
  a.data.assign(values.begin(), values.end());
  return a;
}

inline std::vector<Real> as_reals(const Array& x) { return {x.data.begin(), x.data.end()}; }

/// x as a view into a larger variable with its axes in reverse order; the gaps hold NaN, which no op may read.
inline Tensor strided_variable(Tape& tape, const Array& x) {
  Shape larger{2};  // the last axis: so that no axis of x has stride 1
  for (int axis = 0; axis < x.shape.rank(); ++axis) larger = larger.inserted(0, x.shape[axis] + 1);
  const Strides base = larger.row_major();
  Strides strides{};
  Index offset = 1;  // the first index of every axis is a gap
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    const Index stride = base[static_cast<std::size_t>(x.shape.rank() - 1 - axis)];
    strides[static_cast<std::size_t>(axis)] = stride;
    offset += stride;
  }
  std::vector<Real> values(static_cast<std::size_t>(larger.numel()), std::numeric_limits<Real>::quiet_NaN());
  for (Index i = 0; i < x.shape.numel(); ++i) {
    Index at = offset;
    const Position p = position(x.shape, i);
    for (std::size_t axis = 0; axis < p.size(); ++axis) at += p[axis] * strides[axis];
    values[static_cast<std::size_t>(at)] = static_cast<Real>(x[i]);
  }
  return tape.view("strided", tape.variable(larger, values), x.shape, strides, offset);
}

inline Outcome evaluate(const GradcheckFunction& f, const Arrays& x, Layout layout) {
  Tape tape;
  std::vector<Tensor> inputs;
  for (const Array& a : x)
    inputs.push_back(layout == Layout::strided ? strided_variable(tape, a) : tape.variable(a.shape, as_reals(a)));
  const Tensor y = f(tape, inputs);
  Outcome out;
  out.y = as_array(y.shape(), y.values());

  const rng::Stream random(8, rng::Purpose::check);
  for (Index i = 0; i < y.numel(); ++i)
    out.seed.push_back(static_cast<Real>(random.normal(static_cast<std::uint64_t>(i))));
  Tensor loss = tape.result("weighted sum", {}, {y});
  *loss.value() = 0;
  tape.on_backward(loss, [y, s = out.seed.data()]() mutable {
    Real* dy = y.grad_buffer();
    for_each_run(y.shape(), y.strides(), [&](Index offset, Index count, Index stride) {
      for (Index i = 0; i < count; ++i) dy[offset + i * stride] += static_cast<Real>(*s++);
    });
  });
  for (const Tensor& input : inputs) input.grad_buffer();  // zeros where nothing flows
  tape.backward(loss);
  for (std::size_t i = 0; i < x.size(); ++i) {
    out.grads.push_back(as_array(x[i].shape, inputs[i].grads()));
    if (layout == Layout::packed) continue;
    double whole = 0, seen = 0;
    for (Real g : tape.at(inputs[i].node().owner).grads()) whole += std::abs(static_cast<double>(g));
    for (double g : out.grads[i].data) seen += std::abs(g);
    EXPECT_NEAR(whole, seen, 1e-5 * (1 + seen)) << "a gap of input " << i << " received a gradient";
  }
  return out;
}

inline void expect_near(const Arrays& actual, const Arrays& expected, double tolerance, const std::string& what) {
  double scale = 1;
  for (const Array& a : expected)
    for (double value : a.data) scale = std::max(scale, std::abs(value));
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    ASSERT_EQ(actual[k].shape.str(), expected[k].shape.str()) << what << ' ' << k;
    for (Index i = 0; i < expected[k].shape.numel(); ++i)
      ASSERT_NEAR(actual[k][i], expected[k][i], tolerance * scale)
          << what << ' ' << k << " at element " << i << " of " << expected[k].shape.str();
  }
}

}  // namespace tapehead::test
