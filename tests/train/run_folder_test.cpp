#include "train/run_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/errors.h"
#include "tests/temporary_folder.h"

namespace tapehead {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::error_of;

class RunFolderTest : public testing::Test {
 protected:
  test::TemporaryFolder folder;
  std::string refusal(const std::string& path, bool force = false, bool resume = false) {
    return error_of<FileError>([&] { prepare_run_folder(path, force, resume); });
  }
};

TEST_F(RunFolderTest, IsMadeWithItsParents) {
  const RunFolder run = prepare_run_folder(folder.file("a/b/c"), false, false);
  EXPECT_TRUE(fs::is_directory(folder.file("a/b/c")));
  EXPECT_EQ(run.path(), folder.file("a/b/c"));
  EXPECT_EQ(run.file("last.ckpt"), folder.file("a/b/c/last.ckpt"));
}

TEST_F(RunFolderTest, RefusesWhatCannotHoldARun_F37) {
  write_file_atomically(folder.file("file"), "precious");
  fs::create_symlink(folder.file("nothing"), folder.file("link"));
  EXPECT_EQ(refusal(""), "[run] the name of the run folder is empty.");
  EXPECT_EQ(refusal(folder.file("file")), "[run] " + folder.file("file") + " is a file, not a folder.");
  EXPECT_EQ(refusal(folder.file("link")), "[run] " + folder.file("link") + " is a symbolic link to nothing.");
  EXPECT_TRUE(contains(refusal(folder.file("file/sub")), "cannot make the folder"));
  EXPECT_TRUE(contains(refusal(folder.file("file"), true), "is a file, not a folder"));
  EXPECT_EQ(read_file(folder.file("file")), "precious");
  EXPECT_FALSE(fs::exists(folder.file("nothing")));
}

TEST_F(RunFolderTest, RefusesAFolderThatCannotBeWrittenTo_F37) {
  EXPECT_TRUE(contains(refusal("/proc"), "[run] cannot write in /proc: "));  // not even by root
  EXPECT_TRUE(contains(refusal("/proc/tapehead"), "[run] cannot make the folder /proc/tapehead: "));
  if (::geteuid() == 0) return;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_TRUE(contains(refusal(folder.path()), "Permission denied"));
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST_F(RunFolderTest, RefusesAFolderThatHoldsARun) {
  for (const char* name : {"config.toml", "metrics.jsonl", "last.ckpt", "best.ckpt", "snapshots.bin"}) {
    write_file_atomically(folder.file(name), "old");
    EXPECT_EQ(refusal(folder.path()),
              "[run] " + folder.path() + " holds a run already. Hint: --resume goes on with it, --force removes it.");
    EXPECT_EQ(read_file(folder.file(name)), "old");
    fs::remove(folder.file(name));
  }
  write_file_atomically(folder.file("notes.txt"), "mine");
  prepare_run_folder(folder.path(), false, false);
}

TEST_F(RunFolderTest, ForceRemovesTheRunAndNothingElse) {
  for (const char* name : {"config.toml", "metrics.jsonl", "last.ckpt", "best.ckpt", "snapshots.bin", "notes.txt",
                           "last.ckpt.77-0.tmp", "last.ckpt.old.tmp", "other.ckpt"})
    write_file_atomically(folder.file(name), "old");
  fs::create_directory(folder.file("more"));
  write_file_atomically(folder.file("more/last.ckpt"), "old");
  prepare_run_folder(folder.path(), true, false);
  EXPECT_EQ(folder.listing(), ".lock last.ckpt.old.tmp more notes.txt other.ckpt");
  EXPECT_TRUE(fs::exists(folder.file("more/last.ckpt")));
}

TEST_F(RunFolderTest, ForceDoesNotRemoveAFolderOfARunFilesName) {
  fs::create_directory(folder.file("last.ckpt"));
  EXPECT_TRUE(contains(refusal(folder.path(), true), "is a folder, not a file of a run"));
  EXPECT_TRUE(fs::exists(folder.file("last.ckpt")));
}

TEST_F(RunFolderTest, ResumeNeedsACheckpointAndKeepsTheRun) {
  EXPECT_TRUE(contains(refusal(folder.path(), false, true), "holds no last.ckpt to resume from"));
  write_file_atomically(folder.file("last.ckpt"), "old");
  write_file_atomically(folder.file("metrics.jsonl"), "old");
  write_file_atomically(folder.file("best.ckpt.5-1.tmp"), "half");
  prepare_run_folder(folder.path(), false, true);
  EXPECT_EQ(folder.listing(), ".lock last.ckpt metrics.jsonl");
}

TEST_F(RunFolderTest, OneProcessAtATime) {
  write_file_atomically(folder.file("last.ckpt"), "theirs");
  {
    const RunFolder held = prepare_run_folder(folder.path(), false, true);
    for (const bool force : {false, true})
      EXPECT_EQ(refusal(folder.path(), force, !force),
                "[run] " + folder.path() +
                    " is in use: another process trains in it. Hint: wait until it has ended, or train into another "
                    "folder.");
    EXPECT_EQ(read_file(folder.file("last.ckpt")), "theirs");
    const pid_t child = ::fork();  // the same from another process
    if (child == 0) {
      try {
        prepare_run_folder(folder.path(), false, true);
        ::_exit(1);
      } catch (const FileError&) {
        ::_exit(0);
      }
    }
    int status = 1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  prepare_run_folder(folder.path(), true, false);
}

TEST_F(RunFolderTest, AHoldMovesWithItsObject) {
  const auto taken = [&] {
    RunFolder first = prepare_run_folder(folder.path(), false, false);
    return RunFolder(std::move(first));
  };
  {
    const RunFolder second = taken();  // the first object has ended
    EXPECT_TRUE(contains(refusal(folder.path()), "is in use"));
  }
  prepare_run_folder(folder.path(), false, false);
}

// A killed process leaves its lock file, but not its hold.
TEST_F(RunFolderTest, AKilledProcessHoldsNothing) {
  const pid_t child = ::fork();
  if (child == 0) {
    const RunFolder held = prepare_run_folder(folder.path(), false, false);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(fs::exists(folder.file(".lock")));
  prepare_run_folder(folder.path(), false, false);
}

class InFolder : public RunFolderTest {
 protected:
  InFolder() { fs::current_path(folder.path()); }
  ~InFolder() override { fs::current_path(before_); }

 private:
  fs::path before_ = fs::current_path();
};

TEST_F(InFolder, NextIsTheFirstFreeNumber) {
  EXPECT_EQ(next_run_folder("copy"), "runs/copy-001");
  EXPECT_FALSE(fs::exists("runs"));
  fs::create_directories("runs/copy-001");
  write_file_atomically("runs/copy-002", "a file");
  fs::create_symlink("nothing", "runs/copy-003");
  fs::create_directories("runs/copy-005");
  EXPECT_EQ(next_run_folder("copy"), "runs/copy-004");
  EXPECT_EQ(next_run_folder("lookup"), "runs/lookup-001");
}

TEST_F(InFolder, TwoNewRunsGetTwoFolders) {
  const RunFolder first = new_run_folder("copy"), second = new_run_folder("copy");
  EXPECT_EQ(first.path(), "runs/copy-001");
  EXPECT_EQ(second.path(), "runs/copy-002");
  EXPECT_TRUE(contains(refusal("runs/copy-001"), "is in use"));
}

TEST_F(InFolder, ARunMeansItsBestCheckpoint) {
  fs::create_directory("run");
  EXPECT_EQ(error_of<FileError>([] { checkpoint_of("run"); }),
            "[checkpoint] run holds neither best.ckpt nor last.ckpt.");
  write_file_atomically("run/last.ckpt", "x");
  EXPECT_EQ(checkpoint_of("run"), "run/last.ckpt");
  write_file_atomically("run/best.ckpt", "x");
  EXPECT_EQ(checkpoint_of("run"), "run/best.ckpt");
  EXPECT_EQ(checkpoint_of("run/last.ckpt"), "run/last.ckpt");
  for (const char* missing : {"rnu", ""})
    EXPECT_TRUE(contains(error_of<FileError>([&] { checkpoint_of(missing); }), "no file or run folder"));
}

}  // namespace
}  // namespace tapehead
