// A test of the tests: the gradient checker must find wrong rules and say where, and must let right ones pass.
#include "autograd/gradcheck.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace tapehead {
namespace {

using In = std::span<const Tensor>;

constexpr bool kDouble = sizeof(Real) == 8;
constexpr double kWrong = kDouble ? 1.001 : 1.2;  // float sees coarser faults only

/// y_i = x_i^2, with a backward rule given as dx[i] = or += rule(dy, x, i).
template <class Rule>
Tensor square(Tensor x, Rule rule) {
  Tensor y = x.tape().result("square", x.shape(), {x});
  for (Index i = 0; i < x.numel(); ++i) y.value()[i] = x.value()[i] * x.value()[i];
  x.tape().on_backward(y, [=] {
    Real* dx = x.grad_buffer();
    for (Index i = 0; i < x.numel(); ++i) rule(dx[i], y.grad(), x.value(), i);
  });
  return y;
}

void right(Real& dx, const Real* dy, const Real* x, Index i) { dx += dy[i] * 2 * x[i]; }

template <class Rule>
GradcheckResult check_square(const Shape& shape, Rule rule) {
  return gradcheck("square", [=](Tape&, In x) { return square(x[0], rule); }, {shape});
}

TEST(Gradcheck, PassesARightRule) {
  const GradcheckResult result = check_square({2, 3}, right);
  EXPECT_TRUE(result.passed) << result.message;
  EXPECT_LT(result.error, kDouble ? 1e-9 : 1e-2);
  EXPECT_EQ(result.message, "");
}

TEST(Gradcheck, FindsAFactorAndNamesTheElement) {
  const GradcheckResult result = check_square({2, 3}, [](Real& dx, const Real* dy, const Real* x, Index i) {
    dx += dy[i] * 2 * x[i] * Real(i == 5 ? kWrong : 1);
  });
  ASSERT_FALSE(result.passed);
  EXPECT_EQ(result.tensor, "input 0");
  EXPECT_EQ(result.index, "[1, 2]");
  EXPECT_NEAR(result.analytic / result.numeric, kWrong, kDouble ? 1e-6 : 5e-2);
  EXPECT_TRUE(result.message.starts_with("[square] dL/dx of input 0 at [1, 2] is ")) << result.message;
}

TEST(Gradcheck, FindsTheElementAmongThousands) {
  const GradcheckResult result = check_square(
      {50, 100}, [](Real& dx, const Real* dy, const Real* x, Index i) { dx += dy[i] * x[i] * (i == 4321 ? -100 : 2); });
  ASSERT_FALSE(result.passed);
  EXPECT_EQ(result.index, "[43, 21]");
  EXPECT_NEAR(result.analytic / result.numeric, -50, kDouble ? 1e-6 : 10);
}

TEST(Gradcheck, FindsAMissingAccumulate) {
  const auto overwrite = [](Real& dx, const Real* dy, const Real* x, Index i) { dx = dy[i] * 2 * x[i]; };
  EXPECT_FALSE(check_square({3}, overwrite).passed);  // even where the input is used once
  const auto twice = [&](Tape&, In x) { return square(square(x[0], overwrite), right); };
  EXPECT_FALSE(gradcheck("square", twice, {Shape{3}}).passed);
}

TEST(Gradcheck, FindsARuleThatIsRightForEqualSeedsOnly) {
  EXPECT_FALSE(check_square({4}, [](Real& dx, const Real* dy, const Real* x, Index i) {
                 dx += (dy[0] + dy[1] + dy[2] + dy[3]) / 4 * 2 * x[i];
               }).passed);
}

TEST(Gradcheck, FindsANaN) {
  EXPECT_FALSE(check_square({4}, [](Real& dx, const Real* dy, const Real* x, Index i) {
                 dx += i == 2 ? std::numeric_limits<Real>::quiet_NaN() : dy[i] * 2 * x[i];
               }).passed);
}

/// Softmax over a vector whose rule lacks the term -y_i <dy, y>.
TEST(Gradcheck, FindsAMissingTerm) {
  const auto softmax_without_sum = [](Tape& tape, In in) {
    const Tensor x = in[0];
    Tensor y = tape.result("softmax", x.shape(), {x});
    Real total = 0;
    for (Index i = 0; i < x.numel(); ++i) total += y.value()[i] = std::exp(x.value()[i]);
    for (Index i = 0; i < x.numel(); ++i) y.value()[i] /= total;
    tape.on_backward(y, [=] {
      for (Index i = 0; i < x.numel(); ++i) x.grad_buffer()[i] += y.grad()[i] * y.value()[i];
    });
    return y;
  };
  EXPECT_FALSE(gradcheck("softmax", softmax_without_sum, {Shape{5}}).passed);
}

/// y = a x for a square matrix a, with x's gradient a dy instead of a^T dy; a's own rule is right.
TEST(Gradcheck, FindsATransposedMatrixAndNamesTheInput) {
  const auto product = [](Tape& tape, In in) {
    const Tensor a = in[0], x = in[1];
    const Index n = x.numel();
    Tensor y = tape.result("product", x.shape(), {a, x});
    for (Index i = 0; i < n; ++i) {
      y.value()[i] = 0;
      for (Index j = 0; j < n; ++j) y.value()[i] += a.value()[i * n + j] * x.value()[j];
    }
    tape.on_backward(y, [=] {
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < n; ++j) {
          a.grad_buffer()[i * n + j] += y.grad()[i] * x.value()[j];
          x.grad_buffer()[i] += a.value()[i * n + j] * y.grad()[j];
        }
    });
    return y;
  };
  const GradcheckResult result = gradcheck("product", product, {Shape{3, 3}, Shape{3}});
  ASSERT_FALSE(result.passed);
  EXPECT_EQ(result.tensor, "input 1");
}

/// A small gradient of one input is not hidden by a large one of another.
TEST(Gradcheck, FindsAFaultInASmallGradient) {
  const auto sum = [](Tape& tape, In in) {
    const Tensor a = in[0], b = in[1];
    Tensor y = tape.result("sum", {}, {a, b});
    *y.value() = 1000 * *a.value() + *b.value() / 100;
    tape.on_backward(y, [=] {
      *a.grad_buffer() += 1000 * *y.grad();
      *b.grad_buffer() += *y.grad() / 90;
    });
    return y;
  };
  EXPECT_EQ(kDouble, !gradcheck("sum", sum, {Shape{}, Shape{}}).passed);
}

TEST(Gradcheck, PassesTrueZeros) {
  const auto constant = [](Tape& tape, In x) {
    Tensor y = tape.result("constant", {2}, {x[0]});
    y.value()[0] = 3, y.value()[1] = x[0].value()[0] - x[0].value()[0] + 5;
    return y;
  };
  EXPECT_TRUE(gradcheck("constant", constant, {Shape{4}}).passed);
  EXPECT_TRUE(check_square({0, 3}, right).passed);
}

/// |x|, whose differences mean nothing when 0 lies between x - 2h and x + 2h.
Tensor magnitude(Tape& tape, In in) {
  const Tensor x = in[0];
  Tensor y = tape.result("abs", x.shape(), {x});
  for (Index i = 0; i < x.numel(); ++i) y.value()[i] = std::abs(x.value()[i]);
  tape.on_backward(y, [=] {
    for (Index i = 0; i < x.numel(); ++i) x.grad_buffer()[i] += std::copysign(y.grad()[i], x.value()[i]);
  });
  return y;
}

TEST(Gradcheck, DrawsInputsNearAKinkAgain) {
  int attempts = 0;
  Gradcheck options;
  options.domain = [&](std::size_t, double) { return ++attempts < 4 ? 1e-5 : 0.7; };
  const GradcheckResult result = gradcheck("abs", magnitude, {Shape{}}, options);
  EXPECT_TRUE(result.passed) << result.message;
  EXPECT_EQ(attempts, 4);
}

TEST(Gradcheck, SaysWhenGivenInputsLieOnAKink) {
  const GradcheckResult result = gradcheck("abs", magnitude, {{Shape{2}, {Real(0.5), Real(1e-5)}}});
  ASSERT_FALSE(result.passed);
  if (!kDouble) return;  // float's wide tolerance may settle on a wrong slope
  EXPECT_TRUE(result.message.starts_with("[abs] differences along input 0 do not settle")) << result.message;
}

// --- over the parameters of a model

struct TwoSquares {
  ParameterSet set;
  Parameter a = set.add({3}), b = set.add({2, 2});
  std::vector<std::pair<std::string, Parameter>> named{{"first", a}, {"blocks.0.weight", b}};

  TwoSquares() {
    for (Index i = 0; i < set.size(); ++i) set.values()[i] = Real(0.1) * static_cast<Real>(i + 1);
  }
};

TEST(GradcheckOfParameters, PassesAndLeavesValuesAndGradients) {
  TwoSquares model;
  model.set.grad(model.a)[1] = 42;
  const std::vector<Real> values(model.set.values(), model.set.values() + model.set.size());
  const std::vector<Real> grads(model.set.grads(), model.set.grads() + model.set.size());
  const auto f = [&](Tape& tape) { return square(tape.param(model.b), right); };
  const GradcheckResult result = gradcheck("model", f, model.set, model.named);
  EXPECT_TRUE(result.passed) << result.message;
  EXPECT_TRUE(std::equal(values.begin(), values.end(), model.set.values()));
  EXPECT_TRUE(std::equal(grads.begin(), grads.end(), model.set.grads()));
}

TEST(GradcheckOfParameters, NamesTheParameter) {
  TwoSquares model;
  const auto wrong = [](Real& dx, const Real* dy, const Real* x, Index i) {
    if (i != 2) right(dx, dy, x, i);
  };
  const auto f = [&](Tape& tape) { return square(tape.param(model.b), wrong); };
  const GradcheckResult result = gradcheck("model", f, model.set, model.named);
  ASSERT_FALSE(result.passed);
  EXPECT_EQ(result.tensor, "blocks.0.weight");
  EXPECT_EQ(result.index, "[1, 0]");
}

TEST(GradcheckOfParameters, RestoresValuesWhenTheModelThrows) {
  TwoSquares model;
  int calls = 0;
  const auto f = [&](Tape& tape) {
    if (++calls == 4) throw std::runtime_error("stop");
    return square(tape.param(model.a), right);
  };
  const std::vector<Real> values(model.set.values(), model.set.values() + model.set.size());
  EXPECT_THROW(gradcheck("model", f, model.set, model.named), std::runtime_error);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), model.set.values()));
}

}  // namespace
}  // namespace tapehead
