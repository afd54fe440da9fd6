#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "data/task.h"
#include "tests/errors.h"

namespace tapehead {
namespace {

using test::error_of;

TEST(Lookup, HasTheDefaultsOfTheLesson) {
  const auto task = make_task("lookup");
  EXPECT_EQ(task->source_length(), 8);
  EXPECT_EQ(task->target_length(), 8);
  EXPECT_EQ(task->vocabulary().size(), 16 * 10 + 16 + 10 + 1);
  EXPECT_FALSE(task->aligned());
}

TEST(Lookup, AnswersTheFirstKeysOfATypedSource) {
  const auto task = make_task("lookup", {{"pairs", 3}, {"queries", 2}});
  Example example;
  example.source = task->vocabulary().encode("c7 a3 p0");
  task->answer(example);
  EXPECT_EQ(task->vocabulary().decode(example.target), "c 7 a 3");
  EXPECT_EQ(example.link, (std::vector<std::int32_t>{-1, 0, -1, 1}));
}

// By the names of tokens alone: every value asked for is that of the pair its link points to.
TEST(Lookup, DrawsDistinctKeysAndTrueAnswers) {
  const auto task = make_task("lookup");
  const Vocabulary& names = task->vocabulary();
  rng::Generator random(rng::Stream(5, rng::Purpose::check));
  Example example;
  std::vector<double> linked(8), values(10);
  for (int i = 0; i < 2000; ++i) {
    task->draw(random, example);
    std::set<std::string> keys, asked;
    for (const std::int32_t pair : example.source) {
      ASSERT_EQ(names[pair].size(), 2u);
      keys.insert(names[pair].substr(0, 1));
      ++values.at(static_cast<std::size_t>(names[pair][1] - '0'));
    }
    EXPECT_EQ(keys.size(), 8u);
    for (std::size_t q = 0; q < 8; q += 2) {
      const std::int32_t link = example.link[q + 1];
      EXPECT_EQ(example.link[q], -1);
      EXPECT_EQ(names[example.source.at(static_cast<std::size_t>(link))],
                names[example.target[q]] + names[example.target[q + 1]]);
      asked.insert(names[example.target[q]]);
      ++linked.at(static_cast<std::size_t>(link));
    }
    EXPECT_EQ(asked.size(), 4u);
  }
  for (const double count : linked) EXPECT_NEAR(count, 1000, 5 * std::sqrt(1000));
  for (const double count : values) EXPECT_NEAR(count, 1600, 5 * std::sqrt(1600));
}

TEST(Lookup, ServesTheLargestVocabulary) {
  const auto task = make_task("lookup", {{"pairs", 26}, {"keys", 26}, {"values", 100}, {"queries", 26}});
  Example example;
  rng::Generator random(rng::Stream(5, rng::Purpose::check));
  task->draw(random, example);
  task->answer(example);
  EXPECT_EQ(task->vocabulary().size(), 2600 + 26 + 100 + 1);
  EXPECT_EQ(task->vocabulary()[2599], "z99");
}

TEST(Lookup, RefusesMorePairsThanKeysAndMoreQueriesThanPairs) {
  const std::string message = error_of<ConfigError>([] {
    make_task("lookup", {{"pairs", 9}, {"keys", 8}, {"queries", 10}});
  });
  EXPECT_EQ(message,
            "[lookup] data.pairs is 9, more than data.keys, which is 8. Hint: keys of a source differ.\n"
            "[lookup] data.queries is 10, more than data.pairs, which is 9. Hint: keys of a source differ.");
}

TEST(Lookup, RefusesASourceOutsideTheRule) {
  const auto task = make_task("lookup", {{"pairs", 2}, {"queries", 1}});
  const auto refusal = [&](const char* text) {
    Example example;
    example.source = task->vocabulary().encode(text);
    return error_of<ConfigError>([&] { task->answer(example); });
  };
  EXPECT_EQ(refusal("c7"), "[lookup] the source has 1 pairs, expected 2.");
  EXPECT_EQ(refusal("c7 c3"), "[lookup] the key of 'c3' is given twice.");
  EXPECT_EQ(refusal("c7 a"),
            "[lookup] a source consists of pairs alone, not 'a'. Hint: write a key and its value as one token: a0.");
}

}  // namespace
}  // namespace tapehead
