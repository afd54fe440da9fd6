// Whole runs in a folder: the same bytes whatever the threads and interruptions, and nothing lost when a step fails.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/errors.h"
#include "tests/temporary_folder.h"
#include "train/attention_history.h"
#include "train/trainer.h"

namespace tapehead {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::error_of;

// Ten steps of which eight warm up, with evaluations in between.
Config small(const std::vector<std::string>& settings = {}) {
  Config config = Config::defaults("copy");
  for (const char* setting : {"data.length=4", "data.symbols=6", "model.width=16", "train.batch=16", "train.steps=10",
                              "train.warmup=8", "train.eval_every=4", "train.target=2"})
    config.set(setting);
  for (const std::string& setting : settings) config.set(setting);
  return config;
}

class TrainTest : public testing::Test {
 protected:
  test::TemporaryFolder folder;

  TrainResult run(const std::string& name, const Config& config, int threads = 1, std::uint64_t stop_at = 0,
                  bool resume = false, const TrainObserver& observer = {}) {
    TrainOptions options{config, resume, stop_at, threads};
    return train(options, prepare_run_folder(folder.file(name), false, resume), observer);
  }
  std::string bytes(const std::string& name) { return read_file(folder.file(name)); }
  /// metrics.jsonl without the one figure that depends on the clock.
  std::string metrics(const std::string& name) {
    static const std::regex speed(", \"tokens_per_second\": [^}]*");
    return std::regex_replace(bytes(name + "/metrics.jsonl"), speed, "");
  }
  void expect_same(const std::string& a, const std::string& b) {
    for (const char* file : {"/last.ckpt", "/best.ckpt", "/snapshots.bin", "/config.toml"})
      EXPECT_TRUE(bytes(a + file) == bytes(b + file)) << a << " and " << b << " differ in " << file;
    EXPECT_EQ(metrics(a), metrics(b));
  }
};

TEST_F(TrainTest, GivesTheSameBytesTwiceAndAtAnyNumberOfThreads_F29) {
  for (const char* kind : {"decoder", "encoder-decoder"}) {
    const Config config = small({std::string("model.kind=") + kind, "model.dropout=0.1"});
    const std::string name = kind;
    run(name, config);
    run(name + " again", config);
    run(name + " 2", config, 2);
    run(name + " 3", config, 3);
    for (const char* other : {" again", " 2", " 3"}) expect_same(name, name + other);
    Config reseeded = config;
    reseeded.seed = 2;
    run(name + " reseeded", reseeded);
    EXPECT_FALSE(bytes(name + "/last.ckpt") == bytes(name + " reseeded/last.ckpt"));
  }
}

TEST_F(TrainTest, KeepsAsManySnapshotsWhenItGoesOn_F29) {
  const Config config = small({"train.snapshots=5", "train.steps=40"});
  run("straight", config);
  run("parts", config, 1, 15);
  run("parts", CheckpointFile::load(folder.file("parts/last.ckpt")).config, 1, 0, true);
  expect_same("straight", "parts");
}

TEST_F(TrainTest, GivesTheSameBytesStraightAndInTwoParts_F29) {
  for (const char* kind : {"decoder", "encoder-decoder"})
    for (const char* dropout : {"0", "0.1"}) {
      const Config config = small({std::string("model.kind=") + kind, std::string("model.dropout=") + dropout});
      const std::string name = std::string(kind) + dropout;
      run(name, config);
      const TrainResult half = run(name + " parts", config, 2, 5);
      EXPECT_EQ(half.step, 5u);
      EXPECT_TRUE(half.interrupted);
      const TrainResult whole = run(name + " parts", config, 1, 0, true);
      EXPECT_EQ(whole.step, 10u);
      EXPECT_FALSE(whole.interrupted);
      expect_same(name, name + " parts");
    }
}

TEST_F(TrainTest, MayBeInterruptedAfterEveryStep) {
  run("straight", small());
  TrainObserver impatient;
  impatient.interrupted = [] { return true; };
  for (std::uint64_t step = 1; step <= 10; ++step)
    EXPECT_EQ(run("parts", small(), 1, 0, step > 1, impatient).step, step);
  expect_same("straight", "parts");
}

TEST_F(TrainTest, GoesOnFromALastCheckpointOlderThanWhatLiesBesideIt) {  // killed before it was replaced
  run("straight", small());
  run("parts", small(), 1, 3);
  const std::string older = bytes("parts/last.ckpt");
  run("parts", small(), 1, 7, true);
  test::write_plainly(folder.file("parts/last.ckpt"), older);
  run("parts", small(), 1, 0, true);
  expect_same("straight", "parts");
}

TEST_F(TrainTest, WritesALineForEachStepAndEachEvaluation) {
  run("run", small());
  std::istringstream lines(bytes("run/metrics.jsonl"));
  std::vector<std::uint64_t> steps, evaluations;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    const bool step = json.contains("loss");
    (step ? steps : evaluations).push_back(json.at("step"));
    for (const char* key : {"lr", "grad_norm", "tokens_per_second"}) EXPECT_EQ(json.contains(key), step) << line;
    for (const char* key : {"eval_loss", "token_accuracy", "exact_match"}) EXPECT_NE(json.contains(key), step) << line;
  }
  EXPECT_EQ(steps, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(evaluations, (std::vector<std::uint64_t>{4, 8, 10}));  // and the last step
}

TEST_F(TrainTest, KeepsAttentionAtLogSpacedStepsAndParametersAtSomeOfThem) {
  run("run", small({"train.steps=70", "train.eval_every=70"}));
  const AttentionHistory history = AttentionHistory::load(folder.file("run/snapshots.bin"));
  std::vector<std::uint64_t> steps, with_parameters;
  for (const PackedSnapshot& s : history.snapshots) {
    steps.push_back(s.step);
    if (!s.parameters.empty()) with_parameters.push_back(s.step);
    EXPECT_TRUE(std::isfinite(s.loss));
  }
  EXPECT_EQ(history.heads.size(), 2u);  // one layer of two heads
  EXPECT_EQ(steps.front(), 0u);
  EXPECT_EQ(steps[1], 1u);
  EXPECT_EQ(steps.back(), 70u);
  EXPECT_EQ(with_parameters.front(), 0u);
  EXPECT_EQ(with_parameters.back(), 70u);
  EXPECT_LE(with_parameters.size(), 24u);
  const CheckpointFile last = CheckpointFile::load(folder.file("run/last.ckpt"));
  EXPECT_EQ(history.parameters_of(history.snapshots.back()), last.parameters);
}

TEST_F(TrainTest, LearnsTheSameWithFewSnapshotsAndWithNone) {
  const Config config = small({"train.steps=40"});
  run("many", config);
  for (const std::int64_t most : {0, 1, 2, 5}) {
    TrainOptions options;
    options.config = config;
    options.config.train.snapshots = most;
    const std::string name = "keeps " + std::to_string(most);
    train(options, prepare_run_folder(folder.file(name), false, false), {});
    const CheckpointFile last = CheckpointFile::load(folder.file(name + "/last.ckpt"));
    EXPECT_EQ(last.parameters, CheckpointFile::load(folder.file("many/last.ckpt")).parameters);
    EXPECT_EQ(metrics(name), metrics("many"));
    const AttentionHistory history = AttentionHistory::load(folder.file(name + "/snapshots.bin"));
    EXPECT_LE(history.size(), static_cast<std::size_t>(most));
    EXPECT_EQ(history.empty(), most == 0);
    if (most > 0) {
      EXPECT_EQ(history.snapshots.back().step, 40u);
    }
  }
}

TEST_F(TrainTest, EndsEarlyOnceTheTargetIsReached) {
  const TrainResult r = run("run", small({"data.length=2", "train.steps=2000", "train.warmup=0",
                                          "train.learning_rate=0.01", "train.eval_every=5", "train.target=0.5"}));
  EXPECT_LT(r.step, 2000u);
  EXPECT_EQ(r.step % 5, 0u);
  EXPECT_EQ(r.step, r.best_step);
  EXPECT_GE(r.best.exact_match, 0.5);
  EXPECT_FALSE(r.interrupted);
  const CheckpointFile best = CheckpointFile::load(folder.file("run/best.ckpt"));
  EXPECT_EQ(best.step, r.step);
  EXPECT_EQ(best.exact_match, r.best.exact_match);
  EXPECT_FALSE(best.training);
}

TEST_F(TrainTest, LooksOnceBeforeATargetThatAnythingReaches) {
  EXPECT_EQ(run("run", small({"train.target=0"})).step, 4u);
}

TEST_F(TrainTest, KeepsTheStateBeforeAStepThatFails_F25) {
  run("run", small(), 1, 5);
  CheckpointFile last = CheckpointFile::load(folder.file("run/last.ckpt"));
  std::ranges::fill(last.parameters.at(1).bytes, std::uint8_t{0xff});  // every number of the positions a NaN
  last.save(folder.file("run/last.ckpt"));
  const std::string before = bytes("run/last.ckpt");
  const std::string message = error_of<Error>([&] { run("run", small(), 1, 0, true); });
  EXPECT_TRUE(contains(message, "is not finite at step 6")) << message;
  EXPECT_TRUE(bytes("run/last.ckpt") == before);
  EXPECT_EQ(CheckpointFile::load(folder.file("run/best.ckpt")).step, 4u);
}

TEST_F(TrainTest, SavesWhenAnObserverFails) {
  TrainObserver observer;
  observer.on_step = [](const StepReport& report) {
    if (report.step == 3) throw Error("enough");
  };
  EXPECT_EQ(error_of<Error>([&] { run("run", small(), 1, 0, false, observer); }), "enough");
  EXPECT_EQ(CheckpointFile::load(folder.file("run/last.ckpt")).step, 3u);
}

// NaN in the table's rows of every token that the next step does not read: the step is sound, its evaluation is not.
void spoil_unread_tokens(CheckpointFile& file, std::uint32_t step) {
  const auto task = make_task(file.config.task, file.config.data);
  BatchSource data(*task, Layout::joined, file.config.train.batch, file.config.seed);
  const std::vector<std::int32_t> read = data.training(step).inputs;
  StoredTensor& table = file.parameters.at(0);
  const std::size_t row = sizeof(Real) * static_cast<std::size_t>(table.shape.at(1));
  for (std::size_t id = 0; id < static_cast<std::size_t>(table.shape.at(0)); ++id)
    if (std::ranges::find(read, static_cast<std::int32_t>(id)) == read.end())
      std::memset(table.bytes.data() + id * row, 0xff, row);
}

TEST_F(TrainTest, NeverTakesALossThatIsNoNumberForTheBest_F39) {
  for (const bool known : {true, false}) {
    const Config config = small({"data.length=1", "data.symbols=500", "train.batch=1", "train.steps=7",
                                 known ? "train.eval_every=3" : "train.eval_every=6"});
    const std::string name = known ? "with a best" : "without";
    run(name, config, 1, 5);
    CheckpointFile last = CheckpointFile::load(folder.file(name + "/last.ckpt"));
    spoil_unread_tokens(last, 6);
    last.save(folder.file(name + "/last.ckpt"));
    const std::string best = known ? bytes(name + "/best.ckpt") : "";
    const TrainResult r = run(name, config, 1, 6, true);
    EXPECT_TRUE(contains(metrics(name), "\"step\": 6, \"eval_loss\": null"));
    EXPECT_EQ(r.best_step, known ? 3u : 0u);
    EXPECT_EQ(fs::exists(folder.file(name + "/best.ckpt")), known);
    EXPECT_TRUE(!known || bytes(name + "/best.ckpt") == best);
  }
}

}  // namespace
}  // namespace tapehead
