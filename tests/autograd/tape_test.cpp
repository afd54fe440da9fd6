// The tape: order of the walk back, views, what is kept, and every misuse as a clear error.
#include "autograd/tape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "autograd/error.h"
#include "autograd/ops.h"
#include "tests/allocations.h"
#include "tests/errors.h"

namespace tapehead {
namespace {

using test::error_of;

using Reals = std::vector<Real>;

// --- order and accumulation

TEST(Tape, RunsEachNodeOnceAfterAllItsUsers) {  // F11
  Tape tape;
  const Tensor x = tape.variable({}, {1}), a = tape.variable({}, {1});
  const Tensor xa = x * a;
  tape.backward(x * xa + x * xa + x * x * a);  // 3 x^2 a
  EXPECT_EQ(*x.grad(), 6);
  EXPECT_EQ(*a.grad(), 3);
}

TEST(Tape, AddsTheGradientsOfBothUses) {
  Tape tape;
  const Tensor x = tape.variable({2}, {3, -4});
  tape.backward(sum(x * x));
  EXPECT_EQ(x.grads(), (Reals{6, -8}));
}

TEST(Tape, WalksALongChain) {  // F15: no recursion, neither back nor when the tape is dropped
  constexpr int n = 200000;
  Tape tape;
  const Tensor y0 = tape.variable({}, {1}), c = tape.variable({}, {Real(1e-6)});
  Tensor y = y0;
  for (int i = 0; i < n; ++i) y = y + c * y;
  tape.backward(y);  // y = (1 + c)^n y0
  const double factor = std::pow(1 + double{Real(1e-6)}, n);
  const double rounding = sizeof(Real) == 8 ? 1e-9 : 2e-2;
  EXPECT_NEAR(*y0.grad(), factor, rounding);
  EXPECT_NEAR(*c.grad() / n, factor / (1 + 1e-6), rounding);
}

TEST(Tape, DoesNotRunWhatTheLossDoesNotUse) {
  Tape tape;
  const Tensor x = tape.variable({}, {2}), other = tape.variable({}, {5});
  int runs = 0;
  Tensor unused = tape.result("unused", {}, {other});
  *unused.value() = 0;
  tape.on_backward(unused, [&runs] { ++runs; });
  tape.backward(x * x);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(*x.grad(), 4);
  EXPECT_EQ(error_of<ShapeError>([&] { other.grad(); }),
            "[grad] variable [] has no gradient. Hint: call backward() first, on a loss that depends on it.");
}

TEST(Tape, TakesALeafAsTheLoss) {
  Tape tape;
  const Tensor x = tape.variable({1}, {2});
  tape.backward(x);
  EXPECT_EQ(*x.grad(), 1);
}

// --- what is kept

TEST(Tape, KeepsTheGradientOfAnIntermediateResultOnRequest) {
  Tape tape;
  const Tensor x = tape.variable({}, {3});
  const Tensor kept = (x * x).keep_grad(), dropped = kept * x;
  tape.backward(dropped * Real(2));  // 2 x^3
  EXPECT_EQ(*kept.grad(), 6);
  EXPECT_EQ(error_of<ShapeError>([&] { dropped.grad(); }),
            "[grad] the gradient of mul [] was not kept. Hint: call keep_grad() before backward().");
}

TEST(Tape, KeepsTheGradientOfAViewsOwner) {
  Tape tape;
  const Tensor x = tape.variable({2}, {3, 5});
  const Tensor y = x * Real(2);
  const Tensor view = reshape(y, {2, 1}).keep_grad();
  tape.backward(sum(view * view));  // 4 x^2
  EXPECT_EQ(view.grads(), (Reals{12, 20}));
  EXPECT_EQ(y.grads(), (Reals{12, 20}));
}

TEST(Tape, FindsSavedNodesByName) {
  Tape tape;
  const Tensor a = tape.saved("softmax.lse", {2});
  tape.saved("other", {2});
  const Tensor c = tape.saved("softmax.lse", {3});
  const std::vector<Tensor> found = tape.find("softmax.lse");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].index(), a.index());
  EXPECT_EQ(found[1].index(), c.index());
  EXPECT_TRUE(tape.find("nobody").empty());
}

// --- views

TEST(Views, ShareValuesAndGradients) {
  Tape tape;
  const Tensor x = tape.variable({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor column = slice(transpose(x), 0, 1, 2);  // [1, 2]
  EXPECT_EQ(column.values(), (Reals{2, 5}));
  EXPECT_EQ(column.value(), x.value() + 1);
  tape.backward(sum(column * column) + sum(x));
  EXPECT_EQ(x.grads(), (Reals{1, 5, 1, 1, 11, 1}));
  EXPECT_EQ(column.grads(), (Reals{5, 11}));
}

TEST(Views, OfAViewHaveItsOwner) {
  Tape tape;
  const Tensor x = tape.variable({4, 3}, Reals{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Tensor y = slice(slice(x, 0, 1, 4), 0, 1, 2);
  EXPECT_EQ(y.values(), (Reals{6, 7, 8}));
  EXPECT_EQ(y.node().owner, x.index());
  tape.backward(sum(y));
  EXPECT_EQ(x.grads(), (Reals{0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0}));
}

// F43: an op whose inputs are views of one another's memory computes as with copies.
TEST(Views, OfOneMatrixMeetInOneOp) {
  Tape tape;
  const Reals values{1, 2, 3, 4, 5, 6, 7, 8, 10};
  const Tensor x = tape.variable({3, 3}, values), copy = tape.variable({3, 3}, values);
  const Tensor other = tape.variable({3, 3}, {1, 4, 7, 2, 5, 8, 3, 6, 10});  // copy transposed, in memory of its own
  const auto f = [](Tensor a, Tensor b) { return sum((matmul(a, b) + a * b) * (a - b) + a / (b + b)); };
  const Tensor one = f(x, transpose(x)), two = f(copy, other);
  EXPECT_NEAR(one.item(), two.item(), 1e-4);
  tape.backward(one + two);
  const Reals mine = x.grads(), direct = copy.grads(), crossed = other.grads();
  for (std::size_t i = 0; i < 9; ++i)
    EXPECT_NEAR(mine[i], direct[i] + crossed[(i % 3) * 3 + i / 3], 1e-5 * (1 + std::abs(mine[i]))) << i;
}

TEST(Views, OfHalvesAndColumnsComputeAsCopies) {  // F43, not square
  Tape tape;
  const Tensor x = tape.variable({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor y = concat({slice(x, 1, 2, 4), slice(x, 1, 0, 2)}, 1) * x;
  EXPECT_EQ(y.values(), (Reals{3, 8, 3, 8, 35, 48, 35, 48}));
  tape.backward(sum(y));
  EXPECT_EQ(x.grads(), (Reals{6, 8, 2, 4, 14, 16, 10, 12}));
}

// --- no gradient

TEST(NoGrad, RecordsValuesAndNoCalls) {
  Tape tape;
  const Tensor x = tape.variable({}, {3});
  Tensor y;
  {
    const NoGrad no_grad(tape);
    const NoGrad nested(tape);
    y = x * x;
    EXPECT_FALSE(tape.recording());
  }
  EXPECT_TRUE(tape.recording());
  EXPECT_EQ(y.item(), 9);
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(error_of<ShapeError>([&] { tape.backward(y); }),
            "[backward] the loss depends on no variable or parameter. Hint: check for NoGrad or detach().");
  tape.backward(y * x);
  EXPECT_EQ(*x.grad(), 9);
}

TEST(Detach, SharesTheValueAndStopsTheGradient) {
  Tape tape;
  const Tensor x = tape.variable({2}, {3, 4});
  const Tensor stopped = detach(x);
  EXPECT_EQ(stopped.value(), x.value());
  EXPECT_FALSE(stopped.requires_grad());
  EXPECT_FALSE(reshape(stopped, {2, 1}).requires_grad()) << "nor does a view of it let one through";
  tape.backward(sum(x * stopped));
  EXPECT_EQ(x.grads(), (Reals{3, 4}));
  EXPECT_EQ(error_of<ShapeError>([&] { stopped.grad(); }),
            "[grad] detach [2] needs no gradient. Hint: make it a variable or a parameter.");
}

// --- misuse

TEST(Tape, RefusesASecondBackward) {
  Tape tape;
  const Tensor x = tape.variable({}, {3}), y = x * x;
  tape.backward(y);
  EXPECT_EQ(error_of<ShapeError>([&] { tape.backward(y); }),
            "[backward] called a second time in one pass. Hint: call reset() and compute the loss anew.");
  EXPECT_EQ(*x.grad(), 6) << "and leaves the gradients alone";
}

TEST(Tape, RefusesALossOfManyNumbers) {
  Tape tape;
  const Tensor x = tape.variable({2, 1}, {3, 4});
  EXPECT_EQ(error_of<ShapeError>([&] { tape.backward(x); }),
            "[backward] the loss has shape [2, 1]. Hint: reduce it to one number, as with mean().");
  tape.backward(sum(x));
  EXPECT_EQ(x.grads(), (Reals{1, 1})) << "a refused call does not count";
}

TEST(Tape, RefusesAHandleOfAnEarlierPass) {
  Tape tape;
  const Tensor x = tape.variable({}, {3});
  const Ids ids = tape.ids({1}, std::array{0});
  tape.reset();
  const Tensor fresh = tape.variable({}, {5});
  const std::string stale =
      "[tensor] a handle from an earlier pass was used. Hint: make tensors anew after tape.reset(), or copy values() "
      "out before.";
  EXPECT_EQ(error_of<ShapeError>([&] { x.value(); }), stale);
  EXPECT_EQ(error_of<ShapeError>([&] { x.grads(); }), stale);
  EXPECT_EQ(error_of<ShapeError>([&] { x.keep_grad(); }), stale);
  EXPECT_EQ(error_of<ShapeError>([&] { x* fresh; }), stale);
  EXPECT_EQ(error_of<ShapeError>([&] { tape.backward(x); }), stale);
  EXPECT_EQ(error_of<ShapeError>([&] { ids.data(); }), stale);
}

TEST(Tape, RefusesAnEmptyHandle) {
  const Tensor none;
  EXPECT_FALSE(none.defined());
  const std::string empty = "[tensor] an empty handle was used. Hint: assign the result of an op first.";
  EXPECT_EQ(error_of<ShapeError>([&] { none.shape(); }), empty);
  EXPECT_EQ(error_of<ShapeError>([&] { exp(none); }), empty);
}

TEST(Tape, RefusesInputsOfAnotherTape) {
  Tape tape, other;
  const Tensor x = tape.variable({}, {3}), y = other.variable({}, {4});
  EXPECT_EQ(error_of<ShapeError>([&] { x* y; }),
            "[mul] inputs lie on different tapes. Hint: make all of them on one tape.");
  EXPECT_NE(error_of<ShapeError>([&] { tape.backward(y * y); }), "") << "a loss of another tape";
}

TEST(Tape, RefusesAWrongNumberOfValues) {
  Tape tape;
  EXPECT_EQ(error_of<ShapeError>([&] {
              tape.input({2, 3}, {1, 2});
            }),
            "[input] 2 values for shape [2, 3]. Hint: give one value per element.");
  EXPECT_NE(error_of<ShapeError>([&] { tape.ids({2}, std::array{1}); }), "");
  EXPECT_NE(error_of<ShapeError>([&] { tape.input({2}, {1, 2}).item(); }), "");
}

// --- scopes

TEST(Scope, StandsInErrorsAndNodes) {
  Tape tape;
  const Tensor a = tape.variable({2}, {1, 2}), b = tape.variable({3}, {1, 2, 3});
  {
    const Scope blocks(tape, "blocks", 3);
    const Scope attn(tape, "attn");
    EXPECT_STREQ(tape.scope(), "blocks.3.attn");
    EXPECT_STREQ((a * a).node().scope, "blocks.3.attn");
    EXPECT_NE(error_of<ShapeError>([&] { tape.backward(a); }).find(" (in blocks.3.attn). Hint:"), std::string::npos);
    EXPECT_NE(error_of<ShapeError>([&] { matmul(a, b); }).find(" (in blocks.3.attn)"), std::string::npos);
    EXPECT_NE(error_of<ShapeError>([&] { a* b; }).find(" (in blocks.3.attn)"), std::string::npos);
  }
  EXPECT_STREQ(tape.scope(), "");
  EXPECT_STREQ((a * a).node().scope, "");
}

TEST(Scope, SurvivesAReset) {
  Tape tape;
  {
    const Scope outer(tape, "outer");
    tape.reset();
    EXPECT_STREQ(tape.scope(), "");
    const Scope inner(tape, "inner");
    EXPECT_STREQ(tape.scope(), "inner");
  }
  EXPECT_STREQ(tape.scope(), "");
}

// --- parameters

TEST(Parameters, AreSharedAndCollectGradientsOverPasses) {
  ParameterSet set;
  const Parameter w = set.add({2});
  set.value(w)[0] = 3;
  set.value(w)[1] = 4;
  Tape tape(set);
  for (int pass = 1; pass <= 2; ++pass) {
    tape.reset();
    const Tensor x = tape.param(w), again = tape.param(w);
    EXPECT_EQ(x.value(), set.value(w).data());
    tape.backward(sum(x * again));  // w^2, as two leaves of one parameter
    EXPECT_EQ(set.grad(w)[0], 6 * pass);
    EXPECT_EQ(set.grad(w)[1], 8 * pass);
  }
  set.zero_grad();
  EXPECT_EQ(set.grad(w)[0], 0);
}

TEST(Parameters, AddToTheGradientWhenTheyAreTheLoss) {
  ParameterSet set;
  const Parameter w = set.add({});
  set.grad(w)[0] = 5;
  Tape tape(set);
  tape.backward(tape.param(w));
  EXPECT_EQ(set.grad(w)[0], 6);
}

TEST(Parameters, SendTheirGradientToAnotherBlock) {
  ParameterSet set;
  const Parameter a = set.add({2}), b = set.add({1});
  std::fill_n(set.values(), set.size(), Real{2});
  Reals block(static_cast<std::size_t>(set.size()));
  Tape tape(set);
  tape.set_gradient_block(block.data());
  tape.backward(sum(tape.param(a) * tape.param(b)));
  EXPECT_EQ(block[static_cast<std::size_t>(a.offset)], 2);
  EXPECT_EQ(block[static_cast<std::size_t>(b.offset)], 4);
  EXPECT_TRUE(std::all_of(set.grads(), set.grads() + set.size(), [](Real g) { return g == 0; }));
}

TEST(Parameters, NeedNoGradientUnderNoGrad) {
  ParameterSet set;
  Tape tape(set);
  const Parameter w = set.add({1});
  const NoGrad no_grad(tape);
  EXPECT_FALSE(tape.param(w).requires_grad());
}

TEST(Parameters, OfAnotherSetAreRefused) {
  ParameterSet set;
  set.add({2});
  Tape tape(set), without;
  EXPECT_NE(error_of<ShapeError>([&] { tape.param({1000, {2}}); }), "");
  EXPECT_NE(error_of<ShapeError>([&] { tape.param({}); }), "") << "an empty handle";
  EXPECT_EQ(error_of<ShapeError>([&] {
              without.param({0, {2}});
            }),
            "[param] this tape has no parameters. Hint: construct it as Tape(parameter_set).");
}

TEST(Parameters, HaveRowsAsHandles) {
  ParameterSet set;
  const Parameter w = set.add({4, 3});
  const Parameter rows = w.rows(1, 3);
  EXPECT_EQ(rows.shape, (Shape{2, 3}));
  EXPECT_EQ(rows.offset, w.offset + 3);
  EXPECT_NE(error_of<ShapeError>([&] { w.rows(2, 5); }), "");
  EXPECT_NE(error_of<ShapeError>([&] { w.rows(2, 1); }), "");
}

// --- memory

/// A few ops whose intermediate gradients all have one size.
Real step(Tape& tape, int length) {
  tape.reset();
  const Tensor x = tape.variable({1000}, Reals(1000, Real(0.5)));
  Tensor y = x;
  for (int i = 0; i < length; ++i) y = y * x;
  tape.backward(mean(y));
  return x.grads()[0];
}

TEST(Memory, OfAnActivationsGradientIsUsedAgain) {
  Tape tape;
  step(tape, 20);
  const std::size_t used = tape.arena().used();
  step(tape, 40);
  // 20 more values of 1000 numbers, but no more gradients.
  EXPECT_LT(tape.arena().used() - used, 20 * 1000 * sizeof(Real) * 3 / 2);
}

TEST(Memory, OfASteadyStepIsNotAllocated) {
  Tape tape;
  step(tape, 20);
  step(tape, 20);
  if (!test::AllocationCounter::available()) GTEST_SKIP() << "not counted under a sanitizer";
  const Reals values(1000, Real(0.5));
  tape.reset();
  test::AllocationCounter counter;
  {
    const Scope scope(tape, "steady", 7);
    const Tensor leaf = tape.variable({1000}, values);
    Tensor y = leaf;
    for (int i = 0; i < 20; ++i) y = y * leaf;
    tape.backward(mean(y));
  }
  tape.reset();
  EXPECT_EQ(counter.stop(), 0) << counter.first();
}

}  // namespace
}  // namespace tapehead
