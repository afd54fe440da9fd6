#include "data/batch.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/allocations.h"
#include "tests/errors.h"

namespace tapehead {
namespace {

using Ids = std::vector<std::int32_t>;
using test::error_of;

std::vector<Example> typed(const Task& task, const std::vector<std::string>& sources) {
  std::vector<Example> examples;
  for (const std::string& source : sources) {
    examples.emplace_back().source = task.vocabulary().encode(source);
    task.answer(examples.back());
  }
  return examples;
}

class TinyLookup : public testing::Test {
 protected:
  std::unique_ptr<Task> task = make_task("lookup", {{"pairs", 3}, {"queries", 2}});
  std::vector<Example> examples = typed(*task, {"c7 a3 d0", "b1 d2 a9"});
  Batch batch;
  std::int32_t id(const char* token) const { return task->vocabulary().id(token); }
};

TEST_F(TinyLookup, JoinedReadsSourceAndTargetAsOneSequence) {
  lay_out(*task, examples, Layout::joined, batch);
  EXPECT_EQ(batch.sequences, 2);
  EXPECT_EQ(batch.source_length, 0);
  EXPECT_EQ(batch.target_length, 7);
  EXPECT_TRUE(batch.source.empty());
  EXPECT_EQ(task->vocabulary().decode(batch.inputs), "c7 a3 d0 | c 7 a b1 d2 a9 | b 1 d");
  EXPECT_EQ(batch.targets, (Ids{-1, -1, -1, -1, id("7"), -1, id("3"), -1, -1, -1, -1, id("1"), -1, id("2")}));
  EXPECT_EQ(batch.links, (Ids{-1, -1, -1, -1, 0, -1, 1, -1, -1, -1, -1, 0, -1, 1}));
  EXPECT_EQ(batch.counted, 4);
}

TEST_F(TinyLookup, SplitStartsTheTargetWithTheSeparator) {
  lay_out(*task, examples, Layout::split, batch);
  EXPECT_EQ(batch.source_length, 3);
  EXPECT_EQ(batch.target_length, 4);
  EXPECT_EQ(task->vocabulary().decode(batch.source), "c7 a3 d0 b1 d2 a9");
  EXPECT_EQ(task->vocabulary().decode(batch.inputs), "| c 7 a | b 1 d");
  EXPECT_EQ(batch.targets, (Ids{-1, id("7"), -1, id("3"), -1, id("1"), -1, id("2")}));
  EXPECT_EQ(batch.links, (Ids{-1, 0, -1, 1, -1, 0, -1, 1}));
}

TEST_F(TinyLookup, AlignedIsRefused) {
  const std::string message = error_of<ConfigError>([&] { lay_out(*task, examples, Layout::aligned, batch); });
  EXPECT_TRUE(test::contains(message, "encoder alone cannot learn lookup")) << message;
  EXPECT_EQ(error_of<ConfigError>([&] { BatchSource(*task, Layout::aligned, 4, 1); }), message);
}

TEST_F(TinyLookup, ExamplesOfUnequalLengthAreRefused) {
  examples[1].target.pop_back();
  error_of<ShapeError>([&] { lay_out(*task, examples, Layout::joined, batch); });
}

TEST(LayOut, CopyInEveryLayout) {
  const auto task = make_task("copy", {{"length", 3}, {"symbols", 4}});  // a b c d |
  const auto examples = typed(*task, {"b d b"});
  Batch batch;
  lay_out(*task, examples, Layout::joined, batch);
  EXPECT_EQ(batch.inputs, (Ids{1, 3, 1, 4, 1, 3}));
  EXPECT_EQ(batch.targets, (Ids{-1, -1, -1, 1, 3, 1}));
  EXPECT_EQ(batch.links, (Ids{-1, -1, -1, 0, 1, 2}));
  lay_out(*task, examples, Layout::split, batch);
  EXPECT_EQ(batch.source, (Ids{1, 3, 1}));
  EXPECT_EQ(batch.inputs, (Ids{4, 1, 3}));
  EXPECT_EQ(batch.targets, (Ids{1, 3, 1}));
  lay_out(*task, examples, Layout::aligned, batch);
  EXPECT_TRUE(batch.source.empty());
  EXPECT_EQ(batch.source_length, 0);
  EXPECT_EQ(batch.inputs, (Ids{1, 3, 1}));
  EXPECT_EQ(batch.targets, (Ids{1, 3, 1}));
  EXPECT_EQ(batch.links, (Ids{0, 1, 2}));
  EXPECT_EQ(batch.counted, 3);
}

TEST(LayOut, LongestSequenceIsThatOfTheBatch) {
  for (const TaskEntry& entry : tasks())
    for (const Layout layout : {Layout::joined, Layout::aligned, Layout::split}) {
      const auto task = make_task(entry.name);
      if (layout == Layout::aligned && !task->aligned()) continue;
      const Batch batch = BatchSource(*task, layout, 1, 1).held_out(1, 1);
      EXPECT_EQ(longest_sequence(*task, layout), std::max(batch.source_length, batch.target_length));
    }
}

TEST(BatchSource, ABatchDependsOnSeedAndStepAlone_F29) {
  const auto task = make_task("lookup");
  BatchSource straight(*task, Layout::joined, 8, 1), resumed(*task, Layout::joined, 8, 1);
  BatchSource other_seed(*task, Layout::joined, 8, 2), smaller(*task, Layout::joined, 4, 1);
  for (std::uint32_t step = 1; step < 6; ++step) straight.training(step);
  straight.held_out(10, 1);
  const Ids sixth = straight.training(6).inputs;
  EXPECT_EQ(resumed.training(6).inputs, sixth);
  EXPECT_NE(resumed.training(7).inputs, sixth);
  EXPECT_NE(other_seed.training(6).inputs, sixth);
  const Ids first_half = smaller.training(6).inputs;
  EXPECT_TRUE(std::equal(first_half.begin(), first_half.end(), sixth.begin()));
}

TEST(BatchSource, TrainingAndEvaluationNeverMeet) {
  for (const TaskEntry& entry : tasks()) {
    const auto task = make_task(entry.name);
    BatchSource batches(*task, Layout::split, 64, 1);
    const auto sources = [&](const Batch& batch) {
      std::vector<Ids> rows;
      for (auto row = batch.source.begin(); row != batch.source.end(); row += batch.source_length)
        rows.emplace_back(row, row + batch.source_length);
      return rows;
    };
    const std::vector<Ids> unseen = sources(batches.held_out(1000, 1));
    EXPECT_EQ(unseen.size(), 1000u);
    for (const Ids& source : unseen) EXPECT_TRUE(held_out(source));
    for (std::uint32_t step = 1; step <= 1000; ++step)
      for (const Ids& source : sources(batches.training(step))) ASSERT_FALSE(held_out(source)) << "step " << step;
  }
}

TEST(BatchSource, HeldOutDataFollowsItsOwnSeed) {
  const auto task = make_task("copy");
  const BatchSource batches(*task, Layout::split, 64, 1), others(*task, Layout::split, 8, 9);
  EXPECT_EQ(batches.held_out(5, 3).source, others.held_out(5, 3).source);
  EXPECT_NE(batches.held_out(5, 3).source, batches.held_out(5, 4).source);
  const Batch batch = batches.held_out(50, 3);
  std::set<Ids> different;
  for (auto row = batch.source.begin(); row != batch.source.end(); row += 10) different.insert(Ids(row, row + 10));
  EXPECT_EQ(different.size(), 50u);
}

TEST(BatchSource, ASteadyStepAllocatesNothing) {
  if (!test::AllocationCounter::available()) GTEST_SKIP() << "a sanitizer has its own allocator";
  for (const TaskEntry& entry : tasks())
    for (const Layout layout : {Layout::joined, Layout::split}) {
      const auto task = make_task(entry.name);
      BatchSource batches(*task, layout, 64, 1);
      batches.training(1);
      test::AllocationCounter counter;
      for (std::uint32_t step = 2; step < 20; ++step) batches.training(step);
      const std::int64_t allocations = counter.stop();
      EXPECT_EQ(allocations, 0) << entry.name << ": " << counter.first();
    }
}

}  // namespace
}  // namespace tapehead
