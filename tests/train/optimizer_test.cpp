// AdamW and the gradient's norm against hand values: loops in double that follow the paper line by line.
#include "train/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograd/ops.h"
#include "tests/errors.h"

namespace tapehead {
namespace {

constexpr double kTolerance = sizeof(Real) == 8 ? 1e-13 : 1e-5;

TrainConfig settings() {
  TrainConfig config;
  config.beta1 = 0.9;
  config.beta2 = 0.99;
  config.eps = 1e-8;
  config.weight_decay = 0;
  return config;
}

// Loshchilov and Hutter, algorithm 2, for one number.
struct HandAdamW {
  double lr, m = 0, v = 0;
  int t = 0;
  double update(double g) {
    ++t;
    m = 0.9 * m + 0.1 * g;
    v = 0.99 * v + 0.01 * g * g;
    return lr * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.99, t))) + 1e-8);
  }
};

class OneVector : public testing::Test {
 protected:
  ParameterSet set;
  Parameter p = set.add({3});
  AdamW optimizer() { return AdamW({{"p", p}}, set.size(), settings()); }
};

TEST_F(OneVector, MovesByTheRateAgainstTheSignAtFirst_F23) {
  AdamW adamw = optimizer();
  set.grad(p)[0] = 3;
  set.grad(p)[1] = Real(-0.002);
  adamw.step(set, 0.1, 1);
  EXPECT_NEAR(set.value(p)[0], -0.1, 1e-6);
  EXPECT_NEAR(set.value(p)[1], 0.1, 1e-6);
  EXPECT_EQ(set.value(p)[2], 0);  // no gradient: no 0 / 0 either
  EXPECT_EQ(adamw.steps(), 1u);
}

TEST_F(OneVector, AddsEpsilonAfterTheRootOfTheCorrectedMean_F23) {  // it matters where gradients are as small
  AdamW adamw = optimizer();
  HandAdamW hand{0.1};
  double expected = 0;
  for (const double g : {1e-8, 3e-8, -2e-8}) {
    set.grad(p)[0] = static_cast<Real>(g);
    adamw.step(set, 0.1, 1);
    expected -= hand.update(g);
    EXPECT_NEAR(set.value(p)[0], expected, 0.1 * kTolerance);
    EXPECT_EQ(set.value(p)[1], 0);
  }
}

TEST(AdamW, DecaysMatricesAndNothingElse) {
  ParameterSet set;
  const Parameter matrix = set.add({2, 2}), gain = set.add({2}), scales = set.add({2, 1, 1});
  for (const Parameter& p : {matrix, gain, scales})
    for (Real& x : set.value(p)) x = 2;
  TrainConfig config = settings();
  config.weight_decay = 0.5;
  AdamW adamw({{"matrix", matrix}, {"gain", gain}, {"scales", scales}}, set.size(), config);
  adamw.step(set, 0.1, 1);
  for (Real x : set.value(matrix)) EXPECT_NEAR(x, 2 * (1 - 0.1 * 0.5), kTolerance);
  for (Real x : set.value(gain)) EXPECT_EQ(x, 2);
  for (Real x : set.value(scales)) EXPECT_EQ(x, 2);  // of cosine scores, one a head
}

TEST(AdamW, OnARegressionOfOneWeightDoesWhatIsDoneByHand_F13) {
  ParameterSet set;
  const Parameter weight = set.add({1});
  AdamW adamw({{"weight", weight}}, set.size(), settings());
  HandAdamW hand{0.05};
  double w = 0, before = INFINITY;
  Tape tape(set);
  for (int step = 0; step < 10; ++step) {
    tape.reset();
    set.zero_grad();
    const Tensor loss = mse(tape.param(weight) * tape.input({1}, {2}), tape.input({1}, {3}));  // (2 w - 3)^2
    tape.backward(loss);
    EXPECT_NEAR(loss.item(), (2 * w - 3) * (2 * w - 3), 20 * kTolerance);
    EXPECT_LT(loss.item(), before);
    before = double{loss.item()};
    adamw.step(set, 0.05, 1);
    w -= hand.update(4 * (2 * w - 3));
    EXPECT_NEAR(set.value(weight)[0], w, kTolerance) << "step " << step + 1;
  }
}

TEST(GlobalNorm, OfHugeGradientsIsFiniteAndClips_F25) {
  for (const double huge : {1e20, sizeof(Real) == 8 ? 1e150 : 1e37}) {
    ParameterSet set;
    const Parameter p = set.add({100});
    for (Real& g : set.grad(p)) g = static_cast<Real>(huge);
    const double norm = global_norm(set);
    EXPECT_NEAR(norm / huge, 10, 1e-6);
    AdamW adamw({{"p", p}}, set.size(), settings());
    adamw.step(set, 0.1, 1 / norm);
    EXPECT_NEAR(adamw.m()[0], 0.1 * 0.1, 1e-7);  // clipped to norm 1, each of a hundred gradients is 0.1
    EXPECT_NEAR(set.value(p)[0], -0.1, 1e-6);
  }
}

TEST(GlobalNorm, IsTheRootOfTheSumOfSquares) {
  ParameterSet set;
  const Parameter a = set.add({3}), b = set.add({2, 2});
  set.grad(a)[0] = 2;
  set.grad(a)[2] = -3;
  set.grad(b)[3] = 6;
  EXPECT_NEAR(global_norm(set), 7, 1e-12);
}

TEST(FrozenParameters, StayAndCountInNoNorm) {
  ParameterSet set;
  const Parameter a = set.add({2}), b = set.add({2}), c = set.add({2});
  TrainConfig config = settings();
  config.freeze = {"blocks.0", "tail"};
  AdamW optimizer({{"blocks.0.a", a}, {"blocks.01.b", b}, {"tail", c}}, set.size(), config);
  for (const Parameter& p : {a, b, c}) {
    set.value(p)[0] = 1;
    set.grad(p)[0] = 3;
  }
  optimizer.drop_frozen(set);
  EXPECT_EQ(global_norm(set), 3);
  optimizer.step(set, 0.1, 1);
  EXPECT_EQ(set.value(a)[0], 1);
  EXPECT_NEAR(set.value(b)[0], 0.9, 1e-6);  // a name begins another at a dot alone
  EXPECT_EQ(set.value(c)[0], 1);
}

TEST(FrozenParameters, ThatAreNoneAreRefused) {
  ParameterSet set;
  const Parameter a = set.add({2});
  TrainConfig config = settings();
  config.freeze = {"block.0"};
  EXPECT_TRUE(test::contains(test::error_of<ConfigError>([&] {
                               AdamW({{"blocks.0.a", a}}, set.size(), config);
                             }),
                             "train.freeze names 'block.0'"));
}

}  // namespace
}  // namespace tapehead
