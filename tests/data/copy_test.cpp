#include <gtest/gtest.h>

#include <cmath>

#include "data/task.h"
#include "tests/errors.h"

namespace tapehead {
namespace {

using test::error_of;

TEST(Copy, HasTheDefaultsOfTheLesson) {
  const auto task = make_task("copy");
  EXPECT_EQ(task->source_length(), 10);
  EXPECT_EQ(task->target_length(), 10);
  EXPECT_EQ(task->vocabulary().size(), 17);
  EXPECT_EQ(task->vocabulary()[0], "a");
  EXPECT_EQ(task->vocabulary()[15], "p");
  EXPECT_TRUE(task->aligned());
}

TEST(Copy, AnswersWithTheSourceOnTheDiagonal) {
  const auto task = make_task("copy", {{"length", 4}});
  Example example;
  example.source = task->vocabulary().encode("c a c p");
  task->answer(example);
  EXPECT_EQ(task->vocabulary().decode(example.target), "c a c p");
  EXPECT_EQ(example.link, (std::vector<std::int32_t>{0, 1, 2, 3}));
}

TEST(Copy, DrawsWhatItWouldAnswer) {
  const auto task = make_task("copy");
  rng::Generator random(rng::Stream(3, rng::Purpose::check));
  Example drawn;
  std::vector<double> seen(16);
  for (int i = 0; i < 2000; ++i) {
    task->draw(random, drawn);
    Example answered = drawn;
    task->answer(answered);
    EXPECT_EQ(answered.target, drawn.target);
    EXPECT_EQ(answered.link, drawn.link);
    for (const std::int32_t id : drawn.source) ++seen.at(static_cast<std::size_t>(id));
  }
  double chi_square = 0;
  for (const double count : seen) chi_square += (count - 1250) * (count - 1250) / 1250;
  EXPECT_NEAR(chi_square, 15, 5 * std::sqrt(2 * 15));
}

TEST(Copy, NamesSymbolsBeyondTheAlphabet) {
  const auto task = make_task("copy", {{"symbols", 28}});
  EXPECT_EQ(task->vocabulary()[25], "z");
  EXPECT_EQ(task->vocabulary()[26], "s26");
  EXPECT_EQ(task->vocabulary()[27], "s27");
  EXPECT_EQ(task->separator(), 28);
}

TEST(Copy, RefusesASourceOutsideTheRule) {
  const auto task = make_task("copy", {{"length", 3}});
  Example example;
  example.source = task->vocabulary().encode("a b");
  EXPECT_EQ(error_of<ConfigError>([&] { task->answer(example); }), "[copy] the source has 2 symbols, expected 3.");
  example.source = task->vocabulary().encode("a | b");
  EXPECT_EQ(error_of<ConfigError>([&] { task->answer(example); }),
            "[copy] a source consists of symbols alone, not '|'.");
}

}  // namespace
}  // namespace tapehead
