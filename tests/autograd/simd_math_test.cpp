// The functions of one packet keep the error bounds that their comments state, in units in the last place (ulp).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "autograd/kernels/simd_math.h"

namespace tapehead {
namespace {

constexpr bool kDouble = sizeof(Real) == 8;
constexpr Real kInfinity = std::numeric_limits<Real>::infinity(), kNaN = std::numeric_limits<Real>::quiet_NaN();

// Numbers from `low` to `high`, two thirds of them evenly spaced, the rest ever closer to 0.
std::vector<Real> sample(double low, double high) {
  std::vector<Real> x;
  for (int i = 0; i <= 200'000; ++i) x.push_back(static_cast<Real>(low + (high - low) * i / 200'000));
  for (int i = 0; i <= 50'000; ++i)
    for (const double end : {low, high}) x.push_back(static_cast<Real>(end * std::exp2(-i / 2'000.0)));
  return x;
}

// Largest |f(x) - reference(x)| in ulp of the reference.
template <class F, class Reference>
double worst(const std::vector<Real>& x, F f, Reference reference) {
  std::vector<Real> y(x.size());
  simd::map(static_cast<Index>(x.size()), y.data(), f, x.data());
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double right = reference(static_cast<long double>(x[i]));
    const Real rounded = static_cast<Real>(right);
    const Real ulp = std::nextafter(std::abs(rounded), kInfinity) - std::abs(rounded);
    largest = std::max(
        largest, static_cast<double>(std::abs(static_cast<long double>(y[i]) - right) / static_cast<long double>(ulp)));
  }
  return largest;
}

Real one(simd::Packet (*f)(simd::Packet), Real x) {
  Real y = 0;
  simd::map(1, &y, f, &x);
  return y;
}

simd::Packet exp_of(simd::Packet x) { return simd::exp(x); }
simd::Packet tanh_of(simd::Packet x) { return simd::tanh(x); }
simd::Packet sigmoid_of(simd::Packet x) { return simd::sigmoid(x); }
simd::Packet cdf_of(simd::Packet x) { return simd::normal(x).cdf; }
simd::Packet bell_of(simd::Packet x) { return simd::normal(x).bell; }

TEST(SimdMath, KeepsItsErrorBounds) {
#ifndef EIGEN_VECTORIZE_FMA
  GTEST_SKIP() << "the bounds are those with fused multiply-adds";
#endif
  const double far = kDouble ? 700 : 87;
  EXPECT_LE(worst(sample(-far, far), exp_of, [](long double x) { return std::exp(x); }), 1.1);
  EXPECT_LE(worst(sample(-30, 30), tanh_of, [](long double x) { return std::tanh(x); }), 2.6);
  EXPECT_LE(worst(sample(-far, far), sigmoid_of, [](long double x) { return 1 / (1 + std::exp(-x)); }), 2.5);
  const auto cdf = [](long double x) { return std::erfc(-x / std::sqrt(2.0L)) / 2; };
  EXPECT_LE(worst(sample(-12.5, 12.5), cdf_of, cdf), kDouble ? 250 : 6);
  EXPECT_LE(worst(sample(-12.5, 12.5), bell_of, [](long double x) { return std::exp(-x * x / 2); }),
            kDouble ? 250 : 2.1);
}

TEST(SimdMath, HasItsLimitsAndKeepsNaN) {
  EXPECT_EQ(one(exp_of, -kInfinity), 0);
  EXPECT_EQ(one(exp_of, kInfinity), kInfinity);
  EXPECT_EQ(one(tanh_of, -kInfinity), -1);
  EXPECT_EQ(one(tanh_of, kInfinity), 1);
  EXPECT_EQ(one(sigmoid_of, -kInfinity), 0);
  EXPECT_EQ(one(sigmoid_of, kInfinity), 1);
  EXPECT_EQ(one(cdf_of, -kInfinity), 0);
  EXPECT_EQ(one(cdf_of, kInfinity), 1);
  EXPECT_EQ(one(bell_of, kInfinity), 0);
  for (const auto f : {exp_of, tanh_of, sigmoid_of, cdf_of, bell_of}) EXPECT_TRUE(std::isnan(one(f, kNaN)));
}

}  // namespace
}  // namespace tapehead
