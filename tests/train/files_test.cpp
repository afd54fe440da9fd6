#include "train/files.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/errors.h"
#include "tests/temporary_folder.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;

TEST(Files, GiveBackWhatWasWritten) {
  const test::TemporaryFolder folder;
  const std::string bytes("a\0\r\n\xff", 5), large(300'000, 'x');
  for (const std::string& contents : {bytes, large, std::string()}) {
    write_file_atomically(folder.file("f"), contents);
    EXPECT_EQ(read_file(folder.file("f")), contents);
    EXPECT_EQ(folder.listing(), "f");
  }
}

TEST(Files, AreReadableByOthersAsTheUmaskHasIt) {
  const test::TemporaryFolder folder;
  const mode_t mask = ::umask(022);
  write_file_atomically(folder.file("f"), "x");
  ::umask(mask);
  struct stat status {};
  ASSERT_EQ(::stat(folder.file("f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644u);
}

TEST(Files, ReadingKeepsToItsLimit) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder.file("f"), "12345");
  EXPECT_EQ(read_file(folder.file("f"), 5), "12345");
  EXPECT_TRUE(contains(error_of<FileError>([&] { read_file(folder.file("f"), 4); }), "holds more than 4 bytes"));
}

TEST(Files, WritingNamesWhatIsInTheWay_F37) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("d"));
  EXPECT_EQ(error_of<FileError>([&] { write_file_atomically(folder.file("none/f"), "x"); }),
            "[file] cannot write " + folder.file("none/f") + ": No such file or directory.");
  EXPECT_TRUE(contains(error_of<FileError>([&] { write_file_atomically(folder.file("d"), "x"); }), "Is a directory"));
  EXPECT_TRUE(contains(error_of<FileError>([] { write_file_atomically("/proc/tapehead", "x"); }), "cannot write"));
  EXPECT_EQ(folder.listing(), "d");
}

// A limit on the size of files stands for a full disk: write() fails half-way.
TEST(Files, AFullDiskLeavesTheOldFileAndNothingElse) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder.file("f"), "old");
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string message =
      error_of<FileError>([&] { write_file_atomically(folder.file("f"), std::string(5000, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_TRUE(contains(message, "cannot write " + folder.file("f") + ": File too large")) << message;
  EXPECT_EQ(read_file(folder.file("f")), "old");
  EXPECT_EQ(folder.listing(), "f");
}

// Every other number is taken, so that one of two files meets a leftover first.
TEST(Files, GoAroundTheLeftoverOfAKilledProcess) {
  const test::TemporaryFolder folder;
  const auto leftover = [&](int i) {
    return folder.file("f." + std::to_string(::getpid()) + "-" + std::to_string(i) + ".tmp");
  };
  for (int i = 0; i < 1000; i += 2) test::write_plainly(leftover(i), "leftover");
  for (const char* contents : {"first", "second"}) {
    write_file_atomically(folder.file("f"), contents);
    EXPECT_EQ(read_file(folder.file("f")), contents);
  }
  for (int i = 0; i < 1000; i += 2) ASSERT_TRUE(std::filesystem::exists(leftover(i))) << i;
}

TEST(Files, TellTemporariesByTheirName) {
  EXPECT_TRUE(is_temporary_of("last.ckpt.123-0.tmp", "last.ckpt"));
  for (const char* name : {"last.ckpt", "last.ckpt.tmp", "last.ckpt.old.tmp", "last.ckpt.1-0.tmp2", "best.ckpt.1-0.tmp",
                           "last.ckpt1-0.tmp", ".tmp", ""})
    EXPECT_FALSE(is_temporary_of(name, "last.ckpt")) << name;
}

TEST(Files, AreFoundUnwritableBeforeTheWork) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("x");
  test::write_plainly(path, "old");
  const std::string before = folder.listing();
  require_writable(path);
  require_writable(folder.file("new"));
  EXPECT_EQ(folder.listing(), before);  // nothing is left, nothing is changed
  EXPECT_EQ(read_file(path), "old");
  for (const std::string& wrong : {folder.path(), folder.file("no/x"), path + "/x"})
    EXPECT_TRUE(contains(error_of<FileError>([&] { require_writable(wrong); }), "cannot write " + wrong)) << wrong;
}

}  // namespace
}  // namespace tapehead
