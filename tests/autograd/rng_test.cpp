// Known answers and moments of the counter-based random numbers. Numbers that follow from the mapping (F31) were
// computed apart from this code, by a Philox written in Python.
#include "autograd/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace tapehead::rng {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The vectors of Random123's kat_vectors for philox4x32, 10 rounds (Salmon et al. 2011).
TEST(Philox, GivesTheKnownAnswers) {
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Stream, PlacesIndexPurposeStepAndOrdinalInTheCounter) {
  const Stream stream(0x0123456789abcdef, Purpose::dropout, 3, 9);
  EXPECT_EQ(stream.block(std::uint64_t{5} << 32 | 7), (Words{0x5dc839d1, 0x7975a89c, 0xfa652f8f, 0xd2f4734c}));
}

TEST(Stream, GivesTheSameWeightsOnEveryCompiler) {  // F31
  const Stream stream(1, Purpose::init);
  const double uniform[] = {0.8070191910592949, 0.04269635547277317, 0.23073141108753925, 0.4159460719015047};
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(stream.uniform(i), uniform[i]);
  const double normal[] = {-1.6449581898320118, 0.29415855043944744, 0.27939549963601884, 1.0323037698149908,
                           -0.5403340482288691, 0.05964094438238317, -0.4774609594049042, -0.25006925243205347};
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_NEAR(stream.normal(i), normal[i], 1e-14);  // libm's log and cos
}

TEST(Stream, DependsOnEveryPartOfItsKey) {
  const Stream stream(1, Purpose::init, 2, 3);
  const std::uint32_t bits = stream.bits(4);
  EXPECT_EQ(Stream(1, Purpose::init, 2, 3).bits(4), bits);
  EXPECT_NE(Stream(2, Purpose::init, 2, 3).bits(4), bits);
  EXPECT_NE(Stream(std::uint64_t{1} << 32 | 1, Purpose::init, 2, 3).bits(4), bits);
  EXPECT_NE(Stream(1, Purpose::dropout, 2, 3).bits(4), bits);
  EXPECT_NE(Stream(1, Purpose::init, 1, 3).bits(4), bits);
  EXPECT_NE(Stream(1, Purpose::init, 2, 4).bits(4), bits);
  EXPECT_NE(stream.bits(5), bits);
}

// Bounds of moments are five standard errors wide.
TEST(Stream, UniformHasItsMoments) {
  constexpr int n = 200000;
  const Stream stream(11, Purpose::check);
  double sum = 0, square = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double u = stream.uniform(i);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    square += (u - 0.5) * (u - 0.5);
  }
  EXPECT_NEAR(sum / n, 0.5, 5 / std::sqrt(12.0 * n));
  EXPECT_NEAR(square / n, 1.0 / 12, 5 * std::sqrt(1 / 180.0 / n));
}

TEST(Stream, NormalHasItsMoments) {
  constexpr int n = 200000;
  const Stream stream(12, Purpose::check);
  std::array<double, 5> moment{};
  double neighbours = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double x = stream.normal(i);
    ASSERT_TRUE(std::isfinite(x));
    for (int k = 1; k <= 4; ++k) moment[static_cast<std::size_t>(k)] += std::pow(x, k) / n;
    neighbours += x * stream.normal(i + 1) / n;
  }
  EXPECT_NEAR(moment[1], 0, 5 / std::sqrt(n));
  EXPECT_NEAR(moment[2], 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(moment[3], 0, 5 * std::sqrt(15.0 / n));
  EXPECT_NEAR(moment[4], 3, 5 * std::sqrt(96.0 / n));
  EXPECT_NEAR(neighbours, 0, 5 / std::sqrt(n));
}

TEST(Generator, BelowIsUnbiased) {
  for (const std::uint32_t n : {1u, 3u, 10u, 16u}) {
    Generator random(Stream(13, Purpose::check, n));
    constexpr int draws = 64000;
    std::vector<int> count(n);
    for (int i = 0; i < draws; ++i) ++count.at(random.below(n));
    const double expected = double{draws} / n;
    for (const int c : count) EXPECT_NEAR(c, expected, 5 * std::sqrt(expected)) << n;
  }
}

// With n = 3 * 2^30, taking the high word of bits * n without rejection would hit a third of the numbers twice as
// often: those with remainder 0 modulo 3.
TEST(Generator, BelowRejectsWhatWouldBias) {
  Generator random(Stream(14, Purpose::check));
  constexpr int draws = 30000;
  int thirds[3] = {};
  for (int i = 0; i < draws; ++i) ++thirds[random.below(3u << 30) % 3];
  for (const int c : thirds) EXPECT_NEAR(c, draws / 3, 5 * std::sqrt(draws / 3.0));
}

TEST(Generator, ShuffleIsAPermutationFixedByTheSeed) {  // F31
  std::vector<int> items(10);
  std::iota(items.begin(), items.end(), 0);
  Generator random(Stream(1, Purpose::training_data));
  random.shuffle(std::span(items));
  EXPECT_EQ(items, (std::vector{2, 7, 5, 6, 4, 1, 0, 8, 3, 9}));
  random.shuffle(std::span(items));
  EXPECT_TRUE(std::is_permutation(items.begin(), items.end(), std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}.begin()));
}

TEST(Generator, ShuffleReachesEveryOrderEquallyOften) {
  Generator random(Stream(15, Purpose::check));
  constexpr int draws = 24000;
  std::array<int, 16> seen{};
  for (int i = 0; i < draws; ++i) {
    std::array<int, 3> items{0, 1, 2};
    random.shuffle(std::span<int>(items));
    ++seen.at(static_cast<std::size_t>(4 * items[0] + items[1]));
  }
  for (const int c : {seen[1], seen[2], seen[4], seen[6], seen[8], seen[9]})
    EXPECT_NEAR(c, draws / 6, 5 * std::sqrt(draws / 6.0));
}

}  // namespace
}  // namespace tapehead::rng
