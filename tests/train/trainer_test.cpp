// Single steps of the trainer: what they may not do, and what they may not change.
#include "train/trainer.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "tests/allocations.h"
#include "tests/errors.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;

Config small(const std::vector<std::string>& settings = {}) {
  Config config = Config::defaults("copy");
  for (const char* setting : {"data.length=4", "data.symbols=6", "model.width=16", "train.batch=16"})
    config.set(setting);
  for (const std::string& setting : settings) config.set(setting);
  return config;
}

std::vector<Real> weights(Trainer& trainer) {
  const ParameterSet& set = trainer.model().parameters;
  return {set.values(), set.values() + set.size()};
}

class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before_); }

 private:
  int before_;
};

TEST(TrainerStep, AllocatesNothingOnceSizesRepeat) {
  if (!test::AllocationCounter::available()) GTEST_SKIP() << "the sanitizer owns the allocator";
  for (const char* kind : {"decoder", "encoder-decoder"})
    for (int threads : {1, 2, 3}) {
      const Threads scope(threads);
      Trainer trainer(small({std::string("model.kind=") + kind, "model.dropout=0.1"}), threads);
      for (int i = 0; i < 3; ++i) trainer.step();
      test::AllocationCounter counter;
      for (int i = 0; i < 5; ++i) trainer.step();
      EXPECT_EQ(counter.stop(), 0) << kind << ", " << threads << " threads: " << counter.first();
    }
}

TEST(TrainerStep, OfTheDefaultTasksAllocatesNothingOnceSizesRepeat) {
  if (!test::AllocationCounter::available()) GTEST_SKIP() << "the sanitizer owns the allocator";
  const Threads scope(2);
  for (const char* task : {"copy", "lookup"}) {
    Trainer trainer(Config::defaults(task), 2);
    for (int i = 0; i < 2; ++i) trainer.step();
    test::AllocationCounter counter;
    for (int i = 0; i < 2; ++i) trainer.step();
    EXPECT_EQ(counter.stop(), 0) << task << ": " << counter.first();
  }
}

TEST(TrainerStep, IsNotChangedByLookingAtTheModel_F67) {
  const Config config = small({"model.dropout=0.5"});
  Trainer watched(config, 2), alone(config, 2);
  for (int i = 0; i < 4; ++i) {
    watched.evaluate();
    watched.snapshot();
    watched.checkpoint();
    EXPECT_EQ(watched.step().loss, alone.step().loss) << i;
  }
  EXPECT_EQ(weights(watched), weights(alone));
}

TEST(TrainerStep, ReportsWhatItDid) {
  Trainer trainer(small({"train.warmup=3", "train.learning_rate=0.004", "train.clip=0.5"}), 1);
  const StepReport report = trainer.step();
  EXPECT_EQ(report.step, 1u);
  EXPECT_EQ(trainer.steps_done(), 1u);
  EXPECT_NEAR(report.loss, std::log(7.0), 0.3);
  EXPECT_NEAR(report.learning_rate, 0.001, 1e-12);  // one step of a warmup of three
  EXPECT_GT(report.grad_norm, 0);
  EXPECT_EQ(report.tokens, 16 * 8);  // a b c d | a b c: the last symbol is never read
}

// A hidden unit as large as a number can be, which counts for nothing in the output: the loss is finite, and the
// gradient of the unit's output weights is not.
TEST(TrainerStep, WithAnInfiniteGradientNamesTheParameterAndChangesNone_F25) {
  Trainer trainer(small({"model.activation=relu", "train.clip=0"}), 2);
  const Transformer& net = trainer.model().net;
  ParameterSet& set = trainer.model().parameters;
  const FeedForward& mlp = *net.stack.blocks[0].mlp;
  set.value(mlp.fc.bias)[0] = std::numeric_limits<Real>::max() / 2;
  for (Index row = 0; row < 16; ++row) set.value(mlp.proj.weight)[static_cast<std::size_t>(row * 64)] = 0;
  for (Real& x : set.value(net.head->weight)) x *= Real(1e5);
  const std::vector<Real> before = weights(trainer);
  const std::string message = error_of<Error>([&] { trainer.step(); });
  EXPECT_TRUE(contains(message, "the gradient of blocks.0.mlp.proj.weight is not finite at step 1")) << message;
  EXPECT_FALSE(contains(message, "loss nan") || contains(message, "loss inf")) << message;
  EXPECT_EQ(weights(trainer), before);
  EXPECT_EQ(trainer.steps_done(), 0u);
}

TEST(TrainerStep, WithALossThatIsNoNumberChangesNothing_F25) {
  Trainer trainer(small(), 2);
  const Parameter table = trainer.model().net.stack.positions.weight;
  trainer.model().parameters.value(table)[3] = std::numeric_limits<Real>::infinity();
  const CheckpointFile before = trainer.checkpoint();
  const std::string message = error_of<Error>([&] { trainer.step(); });
  EXPECT_TRUE(contains(message, "is not finite at step 1, loss")) << message;
  const CheckpointFile after = trainer.checkpoint();
  EXPECT_EQ(after.parameters, before.parameters);
  EXPECT_EQ(after.training->moments, before.training->moments);
  EXPECT_EQ(after.training->step, 0u);
}

TEST(TrainerLoad, GoesOnWhereTheCheckpointWasTaken_F29) {
  const Config config = small({"model.dropout=0.1"});
  Trainer first(config, 1), second(config, 1);
  for (int i = 0; i < 3; ++i) first.step();
  second.load(first.checkpoint(), "here");
  EXPECT_EQ(second.steps_done(), 3u);
  for (int i = 0; i < 3; ++i) {
    const StepReport a = first.step(), b = second.step();
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.learning_rate, b.learning_rate);
    EXPECT_EQ(a.grad_norm, b.grad_norm);
  }
  EXPECT_EQ(weights(first), weights(second));
}

TEST(TrainerLoad, RefusesACheckpointOfAnotherModel_F35) {
  Trainer trained(small(), 1), wider(small({"model.width=32"}), 1), deeper(small({"model.layers=2"}), 1);
  trained.step();
  const CheckpointFile file = trained.checkpoint();
  const std::vector<Real> before = weights(wider);
  std::string message = error_of<FileError>([&] { wider.load(file, "here.ckpt"); });
  EXPECT_TRUE(contains(message, "here.ckpt") && contains(message, "tokens.weight is [7, 16], expected [7, 32]"))
      << message;
  EXPECT_EQ(weights(wider), before);
  message = error_of<FileError>([&] { deeper.load(file, "here.ckpt"); });
  EXPECT_TRUE(contains(message, "missing blocks.1.norm1.weight")) << message;
  EXPECT_EQ(wider.steps_done() + deeper.steps_done(), 0u);
}

TEST(TrainerLoad, RefusesAFileWithoutTrainingStateOrOfTheOtherPrecision) {
  Trainer trainer(small(), 1);
  CheckpointFile file = trainer.checkpoint();
  file.width = 12 - file.width;
  EXPECT_TRUE(contains(error_of<FileError>([&] { trainer.load(file, "here"); }), "--double"));
  file = trainer.checkpoint();
  file.training.reset();
  EXPECT_TRUE(contains(error_of<FileError>([&] { trainer.load(file, "here"); }), "no training state"));
}

TEST(Trainer, HoldsOutAThousandSequencesThatTrainingNeverDraws) {
  Trainer trainer(small(), 1);
  EXPECT_EQ(trainer.held_out().sequences, 1000);
  for (const std::size_t at : {std::size_t{0}, std::size_t{999}}) {
    const auto begin = trainer.held_out().inputs.begin() + static_cast<std::ptrdiff_t>(at * 8);
    EXPECT_TRUE(held_out(std::vector<std::int32_t>(begin, begin + 4)));
  }
}

}  // namespace
}  // namespace tapehead
