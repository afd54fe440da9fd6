// Runs that are stopped: by Ctrl-C, by a signal that cannot be caught, by readers that go away.
#include <nlohmann/json.hpp>

#include "tests/errors.h"
#include "tests/tools/process.h"

namespace tapehead {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::Finished;
using test::Process;
using test::Words;

class InterruptionTest : public test::CommandTest {
 protected:
  static constexpr const char* kForever = "1000000000";
  std::string metrics() {
    const std::string path = folder.file("run/metrics.jsonl");
    return fs::exists(path) ? read_file(path) : "";
  }
  /// Waits for a line of a step from `step` on.
  bool reaches(std::uint64_t step) {
    return test::wait_until(
        [&] {
          const std::string text = metrics();
          const std::size_t end = text.rfind('\n');
          if (end == std::string::npos) return false;
          const std::size_t begin = end == 0 ? 0 : text.rfind('\n', end - 1) + 1;
          return nlohmann::json::parse(text.substr(begin, end - begin)).at("step") >= step;
        },
        "a step");
  }
  std::uint64_t steps_saved() {
    const Finished info = run({"info", "run/last.ckpt", "--json"});
    EXPECT_EQ(info.code, 0) << info.err;
    return nlohmann::json::parse(info.out).at("step");
  }
};

TEST_F(InterruptionTest, BySignalsSavesAndTheRunGoesOn) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Process training(TAPEHEAD_COMMAND, tiny("run", {"--steps", kForever}), folder.path());
    ASSERT_TRUE(reaches(3));
    training.signal(signal);
    const Finished finished = training.wait();
    EXPECT_EQ(finished.code, 130) << finished.err;
    EXPECT_TRUE(contains(finished.out, "train --resume run")) << finished.out;
    const std::uint64_t saved = steps_saved();
    EXPECT_GE(saved, 3u);
    const std::string next = std::to_string(saved + 5);
    EXPECT_EQ(run({"train", "--resume", "run", "--threads", "1", "--stop-at", next, "--quiet"}).code, 0);
    EXPECT_EQ(steps_saved(), saved + 5);
    fs::remove_all(folder.file("run"));  // or its metrics would tell of the next one's steps
  }
}

TEST_F(InterruptionTest, WithoutWarningAfterAStepOrTwoCanGoOn) {
  {
    Process training(TAPEHEAD_COMMAND, tiny("run", {"--steps", kForever}), folder.path());
    ASSERT_TRUE(reaches(2));
    training.signal(SIGKILL);
    EXPECT_EQ(training.wait().code, 128 + SIGKILL);
  }
  // The state before the first step is saved at once, the next after ten seconds.
  EXPECT_EQ(
      run({"train", "--resume", "run", "--threads", "1", "--stop-at", std::to_string(steps_saved() + 3), "--quiet"})
          .code,
      0);
  make_run("run", {"--force"});  // the dead process does not hold the folder
}

TEST_F(InterruptionTest, WithoutWarningLeavesTheCheckpointOfBefore) {
  make_run("run", {"--steps", kForever, "--stop-at", "5"});
  {
    Process training(TAPEHEAD_COMMAND, {"train", "--resume", "run", "--threads", "1"}, folder.path());
    ASSERT_TRUE(reaches(10));
    training.signal(SIGKILL);
    training.wait();
  }
  const std::uint64_t saved = steps_saved();
  EXPECT_GE(saved, 5u);
  test::write_plainly(folder.file("run/last.ckpt.17-0.tmp"), "half of a");  // as if killed while it saved
  const std::string next = std::to_string(saved + 3);
  EXPECT_EQ(run({"train", "--resume", "run", "--threads", "1", "--stop-at", next, "--quiet"}).code, 0);
  EXPECT_EQ(steps_saved(), saved + 3);
  EXPECT_FALSE(fs::exists(folder.file("run/last.ckpt.17-0.tmp")));
  make_run("straight", {"--steps", kForever, "--stop-at", next});
  EXPECT_TRUE(read_file(folder.file("run/last.ckpt")) == read_file(folder.file("straight/last.ckpt")));
}

TEST_F(InterruptionTest, ByASecondRunInTheSameFolderIsRefused) {
  Process training(TAPEHEAD_COMMAND, tiny("run", {"--steps", kForever}), folder.path());
  ASSERT_TRUE(reaches(1));
  const Finished second = run(tiny("run", {"--force"}));
  EXPECT_EQ(second.code, 2);
  EXPECT_TRUE(contains(second.err, "another process trains in it")) << second.err;
  training.signal(SIGINT);
  EXPECT_EQ(training.wait().code, 130);
}

TEST_F(InterruptionTest, ByReadersThatGoAwayDoesNotStopTheTraining) {
  std::string line = "(exec 3>code; '" TAPEHEAD_COMMAND "'";
  for (const std::string& word : tiny("run")) line += " '" + word + "'";
  for (const char* reader : {" --force; echo $? >&3) | true", " --force; echo $? >&3) 2>&1 | true"}) {
    Process("/bin/sh", {"-c", line + reader}, folder.path()).wait();
    // The shell waits for the last command of the pipe alone.
    const auto written = [&] {
      return fs::exists(folder.file("code")) && read_file(folder.file("code")).ends_with('\n');
    };
    ASSERT_TRUE(test::wait_until(written, "the exit code"));
    EXPECT_EQ(read_file(folder.file("code")), "0\n") << reader;
    EXPECT_EQ(steps_saved(), 6u);
    fs::remove(folder.file("code"));
  }
}

}  // namespace
}  // namespace tapehead
