#include "train/metrics_log.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/allocations.h"
#include "tests/errors.h"
#include "tests/temporary_folder.h"
#include "train/files.h"

namespace tapehead {
namespace {

std::vector<nlohmann::json> lines(const std::string& path) {
  std::istringstream text(read_file(path));
  std::vector<nlohmann::json> all;
  for (std::string line; std::getline(text, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

class MetricsLogTest : public testing::Test {
 protected:
  test::TemporaryFolder folder;
  std::string path = folder.file("metrics.jsonl");
};

TEST_F(MetricsLogTest, ALineHasTheFieldsOfTheFormat) {
  {
    MetricsLog log(path, 0);
    log.training(1, 2.75, 1e-3, 0.5, 1e6);
    log.evaluation(1, 2.5, 0.25, 0);
  }
  EXPECT_EQ(read_file(path),
            "{\"step\": 1, \"loss\": 2.75, \"lr\": 0.001, \"grad_norm\": 0.5, \"tokens_per_second\": 1000000}\n"
            "{\"step\": 1, \"eval_loss\": 2.5, \"token_accuracy\": 0.25, \"exact_match\": 0}\n");
}

TEST_F(MetricsLogTest, DoublesReadBackExactly) {
  const std::vector<double> values = {0.1 + 0.2, 1.0 / 3, 5e-324, 1.7976931348623157e308, -1e-17, 123456789.123456789};
  {
    MetricsLog log(path, 0);
    for (std::size_t i = 0; i < values.size(); ++i) log.training(i, values[i], 1, 1, 1);
    log.training(std::numeric_limits<std::uint64_t>::max(), -1.7976931348623157e308, -2.2250738585072014e-308,
                 -1.7976931348623157e308, -1.7976931348623157e308);  // the longest line
  }
  const auto read = lines(path);
  ASSERT_EQ(read.size(), values.size() + 1);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(read[i]["loss"].get<double>(), values[i]);
}

TEST_F(MetricsLogTest, WhatIsNotFiniteIsNull) {
  {
    MetricsLog log(path, 0);
    log.training(1, std::numeric_limits<double>::quiet_NaN(), 1, std::numeric_limits<double>::infinity(), 1);
  }
  EXPECT_TRUE(lines(path)[0]["loss"].is_null());
  EXPECT_TRUE(lines(path)[0]["grad_norm"].is_null());
}

TEST_F(MetricsLogTest, ResumingDropsTheStepsToBeDoneAgain_F29) {
  {
    MetricsLog log(path, 0);
    for (std::uint64_t step = 1; step <= 7; ++step) log.training(step, 1, 1, 1, 1);
    log.evaluation(7, 1, 1, 1);
  }
  {
    MetricsLog log(path, 5);
    log.training(6, 2, 1, 1, 1);
  }
  const auto read = lines(path);
  ASSERT_EQ(read.size(), 6u);
  for (std::uint64_t i = 0; i < 6; ++i) EXPECT_EQ(read[i]["step"], i + 1);
  EXPECT_EQ(read[5]["loss"], 2);
}

TEST_F(MetricsLogTest, ResumingDropsATornOrForeignLine) {
  const std::string good = "{\"step\": 1, \"loss\": 2}\n";
  for (const char* bad : {"{\"step\": 2, \"lo", "{\"step\": 2, \"loss\": 3}", "\n", "7\n", "{\"step\": -1}\n",
                          "{\"loss\": 1}\n", "{\"step\": \"1\"}\n", "\xff\xfe\n"}) {
    write_file_atomically(path, good + bad);
    MetricsLog(path, 5).training(3, 1, 1, 1, 1);
    const auto read = lines(path);
    ASSERT_EQ(read.size(), 2u) << bad;
    EXPECT_EQ(read[1]["step"], 3);
  }
}

TEST_F(MetricsLogTest, ANewRunStartsEmpty) {
  write_file_atomically(path, "{\"step\": 1}\n");
  { MetricsLog log(path, 0); }
  EXPECT_EQ(read_file(path), "");
}

TEST_F(MetricsLogTest, AKilledProcessLeavesWholeLines) {
  const pid_t child = ::fork();
  if (child == 0) {
    MetricsLog log(path, 0);
    for (std::uint64_t step = 1; step <= 3; ++step) log.training(step, 1, 1, 1, 1);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(lines(path).size(), 3u);
}

TEST_F(MetricsLogTest, NamesAFileThatCannotBeWritten_F37) {
  EXPECT_EQ(test::error_of<FileError>([&] { MetricsLog log(folder.file("none/metrics.jsonl"), 0); }),
            "[metrics] cannot write " + folder.file("none/metrics.jsonl") + ": No such file or directory.");
}

TEST_F(MetricsLogTest, AFullDiskIsAnError) {
  MetricsLog log(path, 0);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{20, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string torn = test::error_of<FileError>([&] { log.training(1, 1, 1, 1, 1); });
  const std::string none = test::error_of<FileError>([&] { log.training(1, 1, 1, 1, 1); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(torn, "[metrics] cannot write " + path + ": the disk is full.");
  EXPECT_EQ(none, "[metrics] cannot write " + path + ": File too large.");
}

TEST_F(MetricsLogTest, ALineAllocatesNothing) {
  if (!test::AllocationCounter::available()) GTEST_SKIP() << "a sanitizer has its own allocator";
  MetricsLog log(path, 0);
  test::AllocationCounter counter;
  log.training(1, 0.1, 1e-3, 0.5, 1e6);
  log.evaluation(1, 0.1, 0.2, 0.3);
  EXPECT_EQ(counter.stop(), 0) << counter.first();
}

}  // namespace
}  // namespace tapehead
