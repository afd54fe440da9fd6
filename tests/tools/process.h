// The command as a person runs it: a process of its own, with its output, errors and exit code apart.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/temporary_folder.h"
#include "train/files.h"

namespace tapehead::test {

using Words = std::vector<std::string>;

struct Finished {
  int code = -1;  // of a killed process 128 and the signal, as a shell says it
  std::string out, err;
};

/// Waits until `done` says true; a failure and false after a minute.
inline bool wait_until(const std::function<bool()>& done, const char* what) {
  for (int i = 0; i < 6000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ADD_FAILURE() << "waited a minute for " << what;
  return false;
}

class Process {
 public:
  /// Starts `program` in the folder `where`; 80 columns, no colours.
  Process(const std::string& program, const Words& arguments, const std::string& where) {
    Words words = {program},
          settings = {"COLUMNS=80", "TERM=dumb", "LC_ALL=C.UTF-8", "OMP_WAIT_POLICY=passive", "PATH=/usr/bin:/bin"};
    for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "OMP_TOOL_LIBRARIES"})  // sanitizers'
      if (const char* value = std::getenv(name)) settings.push_back(std::string(name) + '=' + value);
    words.insert(words.end(), arguments.begin(), arguments.end());
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, streams_.file("out").c_str(), flags, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, streams_.file("err").c_str(), flags, 0600);
    posix_spawn_file_actions_addchdir_np(&actions, where.c_str());
    if (posix_spawn(&id_, program.c_str(), &actions, nullptr, pointers(words).data(), pointers(settings).data()) != 0) {
      ADD_FAILURE() << "cannot start " << program;
      id_ = 0;
    }
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Process() {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const { ::kill(id_, number); }
  Finished wait() {
    int status = 0;
    Finished finished;
    if (id_ > 0 && ::waitpid(id_, &status, 0) == id_)
      finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    id_ = 0;
    finished.out = read_file(streams_.file("out"));
    finished.err = read_file(streams_.file("err"));
    return finished;
  }

 private:
  static std::vector<char*> pointers(Words& words) {
    std::vector<char*> list;
    for (std::string& word : words) list.push_back(word.data());
    list.push_back(nullptr);
    return list;
  }

  TemporaryFolder streams_;
  pid_t id_ = 0;
};

/// What a terminal receives from a successful call.
inline std::string shown_on_a_terminal(const Words& arguments, const std::string& where) {
  int terminal = -1;
  const pid_t id = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (id == 0) {
    ::setenv("TERM", "xterm-256color", 1);
    std::string program = TAPEHEAD_COMMAND;
    std::vector<char*> list = {program.data()};
    for (const std::string& word : arguments) list.push_back(const_cast<char*>(word.c_str()));
    list.push_back(nullptr);
    if (::chdir(where.c_str()) == 0) ::execv(program.c_str(), list.data());
    ::_exit(127);
  }
  std::string shown;
  char buffer[4096];
  for (ssize_t count; (count = ::read(terminal, buffer, sizeof buffer)) > 0;)  // fails when the command has ended
    shown.append(buffer, static_cast<std::size_t>(count));
  int status = -1;
  ::waitpid(id, &status, 0);
  ::close(terminal);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << shown;
  return shown;
}

/// A test of the command, in an empty folder of its own.
class CommandTest : public testing::Test {
 protected:
  TemporaryFolder folder;

  Finished run(const Words& words) { return Process(TAPEHEAD_COMMAND, words, folder.path()).wait(); }
  /// Six steps of a small model into the folder `out`; `more` comes last.
  static Words tiny(const std::string& out, const Words& more = {}) {
    Words words = {"train", "copy", "--out", out, "--threads", "1", "--steps", "6"};
    for (const char* setting : {"model.width=16", "data.length=3", "data.symbols=5", "train.batch=8",
                                "train.eval_every=3", "train.target=2"}) {
      words.push_back("--set");
      words.push_back(setting);
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void make_run(const std::string& name, const Words& more = {}) {
    const Finished made = run(tiny(name, more));
    ASSERT_EQ(made.code, 0) << made.err;
  }
};

}  // namespace tapehead::test
