// Masks: what each constructor shows, how they join, and what is refused.
#include "autograd/mask.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/errors.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;

std::string drawn(const Mask& mask, const Shape& weights) {
  Tape tape;
  return picture(tape, mask, weights);
}

TEST(Mask, ShowsEverythingUnlessTold) { EXPECT_EQ(drawn({}, {2, 3}), "###\n###\n"); }

TEST(Mask, CausalAlignsToTheEnd_F05) {
  EXPECT_EQ(drawn(Mask::causal(), {3, 3}), "#..\n##.\n###\n");
  EXPECT_EQ(drawn(Mask::causal(), {2, 4}), "###.\n####\n");
  EXPECT_EQ(drawn(Mask::causal(), {1, 4}), "####\n");
}

TEST(Mask, WindowReachesBothWaysUnlessCausal) {
  EXPECT_EQ(drawn(Mask::window(1), {3, 3}), "#..\n.#.\n..#\n");
  EXPECT_EQ(drawn(Mask::window(2), {4, 4}), "##..\n###.\n.###\n..##\n");
  EXPECT_EQ(drawn(Mask::window(2) & Mask::causal(), {4, 4}), "#...\n##..\n.##.\n..##\n");
  EXPECT_EQ(drawn(Mask::causal() & Mask::window(2), {2, 4}), ".##.\n..##\n");
  EXPECT_EQ(drawn(Mask::window(3) & Mask::window(2), {2, 2}), drawn(Mask::window(2), {2, 2}));
}

TEST(Mask, PaddingCountsTheFirstLeadingAxis_F07) {
  const std::array<Index, 2> lengths{1, 3};
  EXPECT_EQ(drawn(Mask::padding(lengths), {2, 2, 3}), "#..\n#..\n\n###\n###\n");
  // As many heads as batches: the lengths are still the batches'.
  EXPECT_EQ(drawn(Mask::padding(lengths), {2, 2, 1, 3}), "#..\n\n#..\n\n###\n\n###\n");
  const std::array<Index, 1> one{2};
  EXPECT_EQ(drawn(Mask::padding(one), {2, 1, 3}), "##.\n\n##.\n");
  const std::array<Index, 2> others{3, 2};
  EXPECT_EQ(drawn(Mask::padding(lengths) & Mask::padding(others), {2, 1, 3}), "#..\n\n##.\n");
}

TEST(Mask, AllowBroadcastsAndJoins) {
  Tape tape;
  const Mask columns = Mask::allow(tape.bools({3}, std::array{true, false, true}));
  const Mask rows = Mask::allow(tape.bools({3, 1}, std::array{true, true, true}));
  EXPECT_EQ(picture(tape, columns & rows, {3, 3}), "#.#\n#.#\n#.#\n");
  EXPECT_EQ(picture(tape, columns & Mask::causal(), {3, 3}), "#..\n#..\n#.#\n");
}

TEST(Mask, RefusesWhatDoesNotFit) {
  const std::array<Index, 3> three{1, 1, 1};
  const std::array<Index, 2> long_one{1, 4}, negative{-1, 2}, nothing{2, 0};
  const auto refusal = [](const Mask& mask, const Shape& weights) {
    return error_of<ShapeError>([&] { drawn(mask, weights); });
  };
  EXPECT_TRUE(
      contains(refusal(Mask::padding(three), {2, 1, 3}), "3 lengths for weights whose first leading axis has 2"));
  EXPECT_TRUE(contains(refusal(Mask::padding(long_one), {2, 1, 3}), "length 4 of batch 1 with 3 sources"));
  EXPECT_TRUE(contains(refusal(Mask::padding(negative), {2, 1, 3}), "length -1 of batch 0"));
  EXPECT_TRUE(contains(refusal(Mask::padding(nothing), {2, 1, 3}), "query 0 of batch 1 may see no source"));
  EXPECT_TRUE(contains(refusal(Mask::window(2), {3, 2}), "a window with 3 queries and 2 sources"));
  EXPECT_TRUE(contains(error_of<ShapeError>([] { Mask::window(0); }), "a window of 0"));
  // Each alone leaves the last query something, the two together nothing (F01).
  const std::array<Index, 1> first{1};
  EXPECT_TRUE(contains(refusal(Mask::window(1) & Mask::padding(first), {2, 2}), "query 1 may see no source"));
  Mask many;
  EXPECT_TRUE(contains(error_of<ShapeError>([&] {
                         for (int i = 0; i < 5; ++i) many = many & Mask::padding(first);
                       }),
                       "more than 4"));
}

}  // namespace
}  // namespace tapehead
