#include "train/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "autograd/error.h"

namespace tapehead {

namespace fs = std::filesystem;

namespace {

constexpr std::array<const char*, 6> kRunFiles = {"config.toml", "metrics.jsonl", "last.ckpt",
                                                  "best.ckpt",   "snapshots.bin", "report.html"};
constexpr const char* kLockFile = ".lock";

[[noreturn]] void refuse(const std::string& fact, const std::string& hint = {}) {
  throw FileError(error_line("run", fact, "", hint));
}

bool is_there(const fs::path& path) {  // a link to nothing is there, too
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

void make_folder(const std::string& path) {
  if (path.empty()) refuse("the name of the run folder is empty");
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return;
  if (fs::exists(status)) refuse(path + " is a file, not a folder");
  if (is_there(path)) refuse(path + " is a symbolic link to nothing");
  fs::create_directories(path, error);
  if (error) refuse("cannot make the folder " + path + ": " + error.message());
}

// The descriptor that holds the folder. Its creation is also the proof that the folder can be written to.
int lock_folder(const std::string& path) {
  const std::string lock = path + "/" + kLockFile;
  const int descriptor = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) refuse("cannot write in " + path + ": " + system_message(errno));
  // A file system without locks says so with another error: there a run goes on unprotected.
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor);
    refuse(path + " is in use: another process trains in it", "wait until it has ended, or train into another folder");
  }
  return descriptor;
}

void remove_file(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(path, error))) refuse(path.string() + " is a folder, not a file of a run");
  if (!fs::remove(path, error) && error) refuse("cannot remove " + path.string() + ": " + error.message());
}

// Half-written files of a process that was killed.
void remove_leftovers(const std::string& path) {
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
    for (const char* name : kRunFiles)
      if (is_temporary_of(entry.path().filename().string(), name)) leftovers.push_back(entry.path());
  for (const fs::path& leftover : leftovers) remove_file(leftover);
}

}  // namespace

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

RunFolder::~RunFolder() {
  if (lock_ >= 0) ::close(lock_);
}

std::string next_run_folder(const std::string& task) {
  for (int number = 1;; ++number) {
    std::string path = fmt::format("runs/{}-{:03}", task, number);
    if (!is_there(path)) return path;
  }
}

RunFolder new_run_folder(const std::string& task) {
  make_folder("runs");
  for (;;) {
    const std::string path = next_run_folder(task);
    std::error_code error;
    if (fs::create_directory(path, error)) return {path, lock_folder(path)};
    if (error) refuse("cannot make the folder " + path + ": " + error.message());
  }  // somebody was faster
}

RunFolder prepare_run_folder(const std::string& path, bool force, bool resume) {
  if (resume && !is_there(path + "/last.ckpt")) refuse(path + " holds no last.ckpt to resume from");
  make_folder(path);
  RunFolder folder(path, lock_folder(path));
  for (const char* name : kRunFiles) {
    if (resume || !is_there(folder.file(name))) continue;
    if (!force) refuse(path + " holds a run already", "--resume goes on with it, --force removes it");
    remove_file(folder.file(name));
  }
  remove_leftovers(path);
  return folder;
}

bool is_training(const std::string& path) {
  const int descriptor = ::open((path + "/" + kLockFile).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool held = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return held;
}

std::string checkpoint_of(const std::string& argument) {
  std::error_code error;
  const fs::file_status status = fs::status(argument, error);
  if (!fs::exists(status)) throw FileError(error_line("checkpoint", "no file or run folder " + in_quotes(argument)));
  if (!fs::is_directory(status)) return argument;
  for (const char* name : {"best.ckpt", "last.ckpt"})
    if (is_there(fs::path(argument) / name)) return (fs::path(argument) / name).string();
  throw FileError(error_line("checkpoint", argument + " holds neither best.ckpt nor last.ckpt"));
}

}  // namespace tapehead
