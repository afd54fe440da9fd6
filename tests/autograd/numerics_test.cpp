// Edge cases of reductions, norms and losses that others have got wrong; each names its fault.
#include <gtest/gtest.h>
#include <omp.h>

#include <array>
#include <cmath>
#include <vector>

#include "autograd/kernels/gemm.h"
#include "autograd/ops.h"
#include "autograd/rng.h"

namespace tapehead {
namespace {

using Reals = std::vector<Real>;

constexpr bool kDouble = sizeof(Real) == 8;
constexpr double kRounding = kDouble ? 1e-13 : 1e-6;

TEST(Reductions, OfOneAxisOrOneRowHaveTheirGradient) {  // F17
  Tape tape;
  const Tensor x = tape.variable({5}, {1, 2, 3, 4, 5});
  const Tensor y = tape.variable({1, 2}, {1, 4});
  tape.backward(mean(x, 0) + sum(max(y, 1, true) + y));
  for (const Real g : x.grads()) EXPECT_NEAR(g, 0.2, kRounding);
  EXPECT_EQ(y.grads(), (Reals{1, 3}));
}

TEST(Max, SendsTheGradientToTheFirstOfEqualElements) {
  Tape tape;
  const Tensor x = tape.variable({2, 3}, {2, 7, 7, 5, 5, 1});
  tape.backward(sum(max(x, -1)));
  EXPECT_EQ(x.grads(), (Reals{0, 1, 0, 1, 0, 0}));
}

TEST(LayerNorm, OfAConstantRowIsItsBias) {  // F27
  Tape tape;
  const Tensor x = tape.variable({2, 4}, {1, 1, 1, 1, 3, 3, 3, 3});
  const Tensor gain = tape.variable({4}, {1, 2, 3, 4}), bias = tape.variable({4}, {5, 6, 7, 8});
  const Tensor y = layer_norm(x, gain, bias);
  EXPECT_EQ(y.values(), (Reals{5, 6, 7, 8, 5, 6, 7, 8}));
  tape.backward(sum(y * y));
  EXPECT_EQ(gain.grads(), (Reals{0, 0, 0, 0}));
  EXPECT_EQ(bias.grads(), (Reals{20, 24, 28, 32}));
  for (const Real g : x.grads()) EXPECT_TRUE(std::isfinite(g));
}

TEST(LayerNorm, OfOneChannelHasNoGradient) {  // F27
  Tape tape;
  const Tensor x = tape.variable({3, 1}, {1, -2, 5});
  const Tensor y = layer_norm(x, tape.variable({1}, {2}), tape.variable({1}, {7}));
  EXPECT_EQ(y.values(), (Reals{7, 7, 7}));
  tape.backward(sum(y * y));
  EXPECT_EQ(x.grads(), (Reals{0, 0, 0}));
}

TEST(LayerNorm, KeepsItsDigitsFarFromZero) {
  Tape tape;
  const Real far = kDouble ? Real(1 << 30) : Real(1 << 12);
  const Tensor x = tape.input({4}, {far + 1, far - 1, far + 1, far - 1});
  const Reals y = layer_norm(x, {}, {}, 0).values();
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], i % 2 ? -1 : 1, kRounding);
}

TEST(CrossEntropy, OfNoCountedTargetIsZeroWithZeroGradient) {  // F19
  for (const auto loss_of : {cross_entropy, composed::cross_entropy}) {
    Tape tape;
    const Tensor logits = tape.variable({2, 3}, {1, 2, 3, 4, 5, 6});
    const Tensor loss = loss_of(logits, tape.ids({2}, std::array{-1, -1}), {.label_smoothing = Real(0.1)});
    EXPECT_EQ(loss.item(), 0);
    tape.backward(loss);
    EXPECT_EQ(logits.grads(), Reals(6, 0));
  }
}

TEST(CrossEntropy, SmoothsOverCountedPositionsAlone) {  // F21
  const auto run = [](const Reals& x, const std::vector<std::int32_t>& targets) {
    Tape tape;
    const auto rows = static_cast<Index>(targets.size());
    const Tensor logits = tape.variable({rows, 3}, x);
    const Tensor loss = cross_entropy(logits, tape.ids({rows}, targets), {.label_smoothing = Real(0.2)});
    tape.backward(loss);
    Reals all = logits.grads();
    all.push_back(loss.item());
    return all;
  };
  Reals three = run({1, 2, 4, 9, 9, -9, 0, 3, 1}, {2, -1, 0});
  const Reals two = run({1, 2, 4, 0, 3, 1}, {2, 0});
  EXPECT_EQ((Reals{three[3], three[4], three[5]}), (Reals{0, 0, 0}));
  three.erase(three.begin() + 3, three.begin() + 6);
  for (std::size_t i = 0; i < two.size(); ++i) EXPECT_NEAR(three[i], two[i], kRounding) << i;
}

TEST(CrossEntropy, TakesAnIgnoreValueThatIsAlsoAClass) {
  Tape tape;
  const Tensor logits = tape.variable({2, 3}, {1, 2, 3, 0, 0, 0});
  const Tensor loss = cross_entropy(logits, tape.ids({2}, std::array{0, 2}), {.ignore = 0});
  EXPECT_NEAR(loss.item(), std::log(3.0), kRounding);
}

TEST(CrossEntropy, AddsUpOverShards) {
  const Reals x{1, 2, 4, 9, 9, -9, 0, 3, 1};
  const auto part = [&](Index begin, Index end, const std::vector<std::int32_t>& targets, Index divisor) {
    Tape tape;
    const Tensor logits = tape.input({end - begin, 3}, Reals(x.begin() + begin * 3, x.begin() + end * 3));
    return cross_entropy(logits, tape.ids({end - begin}, targets), {.divisor = divisor}).item();
  };
  EXPECT_NEAR(part(0, 1, {2}, 2) + part(1, 3, {-1, 0}, 2), part(0, 3, {2, -1, 0}, 0), kRounding);
}

TEST(Softmax, AndItsLogarithmSurviveHugeInputs) {
  Tape tape;
  const Real huge = kDouble ? Real(1e300) : Real(1e37);
  const Tensor x = tape.variable({2, 3}, {huge, 0, -huge, Real(1e4), Real(1e4), -Real(1e4)});
  EXPECT_EQ(softmax(x).values(), (Reals{1, 0, 0, Real(0.5), Real(0.5), 0}));
  const Reals log_p = log_softmax(x).values();
  EXPECT_EQ(log_p[0], 0);
  EXPECT_EQ(log_p[2], -2 * huge);
  EXPECT_NEAR(log_p[3], -std::log(2.0), kRounding);
  const Tensor total = logsumexp(x, -1);
  EXPECT_EQ(total.values()[0], huge);
  tape.backward(sum(total) + sum(log_softmax(x)));
  for (const Real g : x.grads()) EXPECT_TRUE(std::isfinite(g));
}

TEST(Activations, SaturateWithoutNaN) {
  Tape tape;
  const Tensor x = tape.variable({4}, {-Real(1e4), -Real(90), Real(90), Real(1e4)});
  EXPECT_EQ(tanh(x).values(), (Reals{-1, -1, 1, 1}));
  EXPECT_EQ(sigmoid(x).values()[3], 1);
  EXPECT_EQ(sigmoid(x).values()[0], 0);
  const Tensor all = sigmoid(x) + tanh(x) + silu(x) + gelu(x) + gelu(x, Gelu::tanh);
  tape.backward(sum(all));
  for (const Real y : all.values()) EXPECT_TRUE(std::isfinite(y));
  for (const Real g : x.grads()) EXPECT_TRUE(std::isfinite(g));
}

// Few rows sum in another order than many: the whole product decides, never the piece that a thread has.
TEST(Gemm, IsTheSameBitsInAnyNumberOfPieces) {
  constexpr Index k = 30'011;
  const int threads = omp_get_max_threads();
  for (const auto& size : {std::pair<Index, Index>{1, 9}, {3, 40}, {4, 5}, {5, 6}, {6, 5}, {7, 7}}) {
    const Index m = size.first, n = size.second;
    Reals a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(n * k));
    rng::Generator random(rng::Stream(1, rng::Purpose::check));
    for (Reals* x : {&a, &b})
      for (Real& value : *x) value = static_cast<Real>(random.normal());
    const auto product = [&](int pieces) {
      omp_set_num_threads(pieces);
      Reals c(static_cast<std::size_t>(m * n));
      gemm_in_pieces(m, n, k, {a.data(), k, 1}, {b.data(), 1, k}, {c.data(), n}, false);
      return c;
    };
    const Reals whole = product(1);
    for (const int pieces : {2, 3, 8}) EXPECT_EQ(product(pieces), whole) << m << " x " << n;
    double exact = 0;
    for (std::size_t p = 0; p < static_cast<std::size_t>(k); ++p) exact += double{a[p]} * double{b[p]};
    EXPECT_NEAR(whole[0], exact, (kDouble ? 1e-11 : 1e-2));
  }
  omp_set_num_threads(threads);
}

TEST(Relu, HasNoGradientAtZero) {
  Tape tape;
  const Tensor x = tape.variable({3}, {-1, 0, 2});
  tape.backward(sum(relu(x)));
  EXPECT_EQ(x.grads(), (Reals{0, 0, 1}));
}

}  // namespace
}  // namespace tapehead
