// Dropout: what is kept, how often, and that shards of a batch draw what one tape would. Its rule: tests/op_cases.h.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "autograd/error.h"
#include "autograd/ops.h"
#include "tests/errors.h"

namespace tapehead {
namespace {

using Reals = std::vector<Real>;

Reals dropped(Index rows, Index columns, Index first_sequence, Real p = Real(0.25), std::uint64_t seed = 1,
              std::uint32_t step = 0) {
  Tape tape;
  tape.training = true;
  tape.random = {seed, step, first_sequence};
  return dropout(tape.input({rows, columns}, Reals(static_cast<std::size_t>(rows * columns), 3)), p).values();
}

TEST(Dropout, KeepsTheShareOfItsProbability) {
  constexpr Index n = 100000;
  for (const double p : {0.1, 0.25, 0.9}) {
    double kept = 0;
    for (const Real y : dropped(n, 1, 0, static_cast<Real>(p))) {
      if (y == 0) continue;
      ASSERT_NEAR(y, 3 / (1 - p), 1e-5 / (1 - p));
      ++kept;
    }
    EXPECT_NEAR(kept / n, 1 - p, 5 * std::sqrt(p * (1 - p) / n));
  }
}

TEST(Dropout, DrawsTheSameInShardsAsInOneBatch) {
  const Reals whole = dropped(6, 7, 0);
  Reals joined = dropped(2, 7, 0);
  for (const auto& [rows, first] : {std::pair<Index, Index>{1, 2}, {3, 3}}) {
    const Reals shard = dropped(rows, 7, first);
    joined.insert(joined.end(), shard.begin(), shard.end());
  }
  EXPECT_EQ(joined, whole);
}

TEST(Dropout, DrawsAnewForEachSeedStepAndLayer) {
  Tape tape;
  tape.training = true;
  const Tensor x = tape.input({64}, Reals(64, 1));
  std::set<Reals> seen{dropout(x, Real(0.5)).values(), dropout(x, Real(0.5)).values()};
  seen.insert(dropped(64, 1, 0, Real(0.5), 2));
  seen.insert(dropped(64, 1, 0, Real(0.5), 1, 1));
  EXPECT_EQ(seen.size(), 4u);
  tape.reset();
  tape.training = true;
  EXPECT_TRUE(seen.contains(dropout(tape.input({64}, Reals(64, 1)), Real(0.5)).values())) << "the same pass again";
}

TEST(Dropout, RefusesAProbabilityOutsideItsRange) {
  Tape tape;
  const Tensor x = tape.input({1}, {1});
  for (const Real p : {Real(-0.1), Real(1), Real(NAN)})
    EXPECT_TRUE(test::error_of<Error>([&] { dropout(x, p); }).starts_with("[dropout] p is ")) << p;
}

}  // namespace
}  // namespace tapehead
