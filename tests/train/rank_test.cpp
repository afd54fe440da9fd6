#include "train/rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tapehead {
namespace {

double tau(const std::vector<double>& a, const std::vector<double>& b) { return kendall_tau(a, b); }

TEST(KendallTau, IsOneForTheSameOrderAndMinusOneForTheOpposite) {
  EXPECT_EQ(tau({1, 2, 3}, {10, 20, 30}), 1);
  EXPECT_EQ(tau({1, 2, 3}, {3, 2, 1}), -1);
}

// scipy.stats.kendalltau([12, 2, 1, 12, 2], [1, 4, 7, 1, 0]) = -0.47140452079103168, its documented example.
TEST(KendallTau, CountsTiesAsTauB) { EXPECT_NEAR(tau({12, 2, 1, 12, 2}, {1, 4, 7, 1, 0}), -0.4714045207910317, 1e-15); }

TEST(KendallTau, OfConstantsIsNoNumber) { EXPECT_TRUE(std::isnan(tau({1, 1}, {1, 2}))); }

}  // namespace
}  // namespace tapehead
