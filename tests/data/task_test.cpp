#include "data/task.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "data/builtin.h"
#include "tests/errors.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;
using test::lines_of;

rng::Generator generator(std::uint32_t ordinal = 0) {
  return rng::Generator(rng::Stream(7, rng::Purpose::check, 0, ordinal));
}

TEST(Vocabulary, EncodesAndDecodes) {
  const Vocabulary vocabulary({"a", "c7", "|"});
  EXPECT_EQ(vocabulary.size(), 3);
  EXPECT_EQ(vocabulary.encode(" c7\t| a\n c7 "), (std::vector<std::int32_t>{1, 2, 0, 1}));
  EXPECT_EQ(vocabulary.decode({1, 2, 0}), "c7 | a");
  EXPECT_TRUE(vocabulary.encode("  ").empty());
}

TEST(Vocabulary, RefusesNamesThatCannotBeTyped) {
  for (const std::vector<std::string>& names : {std::vector<std::string>{"a", "b", "a"}, {"a", ""}, {"a b"}, {"a\n"}})
    error_of<ConfigError>([&] { Vocabulary vocabulary(names); });
}

TEST(Vocabulary, NamesATokenOutsideIt_F53) {
  const Vocabulary vocabulary({"a", "b", "c7", "c8"});
  EXPECT_EQ(error_of<ConfigError>([&] { vocabulary.encode("a d"); }),
            "[vocabulary] no token 'd'. Hint: the tokens are a b c7 c8.");
  EXPECT_EQ(error_of<ConfigError>([&] { vocabulary.encode("c77"); }),
            "[vocabulary] no token 'c77'. Did you mean 'c7'?");
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { vocabulary.encode("\xff\x1b[2J"); }), "'\xff\\x1b[2J'"));
}

// Residues worked out with another implementation of FNV-1a, itself held against the published value of "foob".
TEST(HeldOut, IsFnv1aFolded) {
  EXPECT_TRUE(held_out({118, 207, 263, 176, 295}));
  EXPECT_TRUE(held_out({105, 218, 28, 246, 186}));
  EXPECT_TRUE(held_out({23, 151, 6, 7, 46}));
  EXPECT_FALSE(held_out({46, 294, 173, 116, 199}));   // 1
  EXPECT_FALSE(held_out({115, 122, 160, 253, 245}));  // 2
  EXPECT_FALSE(held_out({193, 195, 104, 285, 1}));    // 4
  EXPECT_FALSE(held_out({}));
  std::vector<std::int32_t> held;
  for (std::int32_t id = 0; id < 16; ++id)
    if (held_out({id})) held.push_back(id);
  EXPECT_EQ(held, (std::vector<std::int32_t>{11}));
}

TEST(HeldOut, TakesATenthWithoutBias) {
  const auto task = make_task("copy");
  auto random = generator();
  Example example;
  constexpr int kDraws = 200'000;
  double count = 0, odd = 0;
  std::map<std::pair<std::size_t, std::int32_t>, double> at;
  for (int i = 0; i < kDraws; ++i) {
    task->draw(random, example);
    if (!held_out(example.source)) continue;
    ++count;
    std::int32_t sum = 0;
    for (std::size_t m = 0; m < 10; ++m) {
      ++at[{m, example.source[m]}];
      sum += example.source[m];
    }
    odd += sum % 2;
  }
  EXPECT_NEAR(count, 0.1 * kDraws, 4 * std::sqrt(kDraws * 0.1 * 0.9));
  EXPECT_NEAR(odd, 0.5 * count, 4 * std::sqrt(count * 0.25));  // plain FNV-1a would give 0 or all
  double chi_square = 0;
  for (std::size_t m = 0; m < 10; ++m)
    for (std::int32_t id = 0; id < 16; ++id) chi_square += std::pow(at[{m, id}] - count / 16, 2) / (count / 16);
  EXPECT_NEAR(chi_square, 150, 5 * std::sqrt(2 * 150));  // 10 x 15 degrees of freedom
}

TEST(DrawSplit, GivesTheSideAskedFor) {
  const auto task = make_task("lookup");
  auto random = generator();
  Example example;
  for (int i = 0; i < 200; ++i) {
    task->draw_side(i % 2 == 0, random, example);
    EXPECT_EQ(held_out(example.source), i % 2 == 0);
  }
}

// With one symbol there is one source: it is on one side, and the other side is empty.
TEST(DrawSplit, EndsWhenASideIsEmpty) {
  for (std::int64_t length = 1; length <= 40; ++length) {
    const std::vector<std::int32_t> only(static_cast<std::size_t>(length), 0);
    const std::string message = error_of<ConfigError>([&] { make_task("copy", {{"symbols", 1}, {"length", length}}); });
    EXPECT_TRUE(contains(message, held_out(only) ? "left to train on" : "held out")) << message;
    EXPECT_EQ(lines_of(message), 1);
  }
}

TEST(DrawSplit, ServesASmallSpaceThatHasBothSides) {
  const auto task = make_task("copy", {{"symbols", 16}, {"length", 1}});
  auto random = generator();
  Example example;
  task->draw_side(true, random, example);
  EXPECT_TRUE(held_out(example.source));
}

TEST(DrawDistinct, EverySelectionAndOrderIsAsLikely) {
  std::map<std::vector<std::int32_t>, double> seen;
  std::vector<std::int32_t> scratch(4), drawn(3);
  auto random = generator();
  constexpr int kDraws = 24'000;
  for (int i = 0; i < kDraws; ++i) {
    draw_distinct(random, 4, scratch, drawn);
    ++seen[drawn];
  }
  ASSERT_EQ(seen.size(), 24u);
  double chi_square = 0;
  for (const auto& [order, count] : seen) chi_square += std::pow(count - 1000, 2) / 1000;
  EXPECT_NEAR(chi_square, 23, 5 * std::sqrt(2 * 23));
}

TEST(MakeTask, SuggestsForASlip) {
  EXPECT_EQ(error_of<ConfigError>([] { make_task("lokup"); }), "[task] unknown task 'lokup'. Did you mean 'lookup'?");
  EXPECT_EQ(error_of<ConfigError>([] { make_task("translate"); }),
            "[task] unknown task 'translate'. Hint: the tasks are copy, lookup.");
  EXPECT_EQ(error_of<ConfigError>([] {
              make_task("copy", {{"lenght", 5}});
            }),
            "[copy] unknown setting 'data.lenght'. Did you mean 'data.length'?");
}

TEST(MakeTask, ListsEveryKnobOutOfRange) {
  const std::string message = error_of<ConfigError>([] {
    make_task("copy", {{"length", 0}, {"colour", 1}, {"symbols", 1001}});
  });
  EXPECT_EQ(message,
            "[copy] data.length is 0, outside 1 to 256.\n"
            "[copy] unknown setting 'data.colour'.\n"
            "[copy] data.symbols is 1001, outside 1 to 1000.");
}

TEST(MakeTask, EveryTaskIsSoundAtItsDefaults) {
  for (const TaskEntry& entry : tasks()) {
    const auto task = make_task(entry.name);
    EXPECT_EQ(task->name(), entry.name);
    EXPECT_EQ(task->vocabulary()[task->separator()], "|");
    auto random = generator();
    Example example;
    for (int i = 0; i < 100; ++i) {
      task->draw(random, example);
      ASSERT_EQ(static_cast<std::int64_t>(example.source.size()), task->source_length());
      ASSERT_EQ(static_cast<std::int64_t>(example.target.size()), task->target_length());
      ASSERT_EQ(example.link.size(), example.target.size());
      for (const std::int32_t link : example.link) {
        EXPECT_GE(link, -1);
        EXPECT_LT(link, task->source_length());
      }
      for (const auto* ids : {&example.source, &example.target})
        for (const std::int32_t id : *ids) {
          EXPECT_GE(id, 0);
          EXPECT_LT(id, task->vocabulary().size());
          EXPECT_NE(id, task->separator());
        }
    }
    const auto again = make_task(entry.name, task->knobs());
    EXPECT_EQ(again->knobs(), task->knobs());
  }
}

}  // namespace
}  // namespace tapehead
