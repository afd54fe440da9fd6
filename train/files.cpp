#include "train/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "autograd/error.h"

namespace tapehead {

namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  /// False when the file system reports a late failure, as network ones do.
  bool close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

[[noreturn]] void fail(const char* action, const std::string& path, int error) {
  throw FileError(error_line("file", std::string("cannot ") + action + " " + path + ": " + system_message(error)));
}

// 0, or the errno of what failed.
int write_and_sync(int descriptor, std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = ::write(descriptor, contents.data(), contents.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) contents.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(descriptor) == 0 ? 0 : errno;
}

int create_beside(const std::string& path, std::string& name) {
  static std::atomic<unsigned> count = 0;
  for (int tries = 0; tries < 100; ++tries) {  // an earlier process of the same number may have left its file
    name = path + "." + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".tmp";
    const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

}  // namespace

std::string system_message(int error) { return std::generic_category().message(error); }

std::string read_file(const std::string& path, std::size_t limit) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail("read", path, errno);
  std::string contents, chunk(1 << 16, '\0');
  for (;;) {
    const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path, errno);
    if (got == 0) return contents;
    contents.append(chunk, 0, static_cast<std::size_t>(got));
    if (contents.size() > limit)
      throw FileError(error_line("file", path + " holds more than " + std::to_string(limit) + " bytes"));
  }
}

void write_file_atomically(const std::string& path, std::string_view contents) {
  std::string beside;
  Descriptor file(create_beside(path, beside));
  if (file.get() < 0) fail("write", path, errno);
  int error = write_and_sync(file.get(), contents);
  if (!file.close() && error == 0) error = errno;
  if (error == 0 && std::rename(beside.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(beside.c_str());
    fail("write", path, error);
  }
  // The new name must survive a power cut too. Some file systems cannot sync a folder: then there is no more to do.
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const Descriptor folder(::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) ::fsync(folder.get());
}

void require_writable(const std::string& path) {
  if (std::filesystem::is_directory(path)) fail("write", path, EISDIR);
  std::string beside;
  const Descriptor file(create_beside(path, beside));
  if (file.get() < 0) fail("write", path, errno);
  ::unlink(beside.c_str());
}

bool is_temporary_of(std::string_view name, std::string_view file) {
  constexpr std::string_view kEnd = ".tmp";
  if (name.size() <= file.size() + 1 + kEnd.size() || !name.starts_with(file) || !name.ends_with(kEnd)) return false;
  const std::string_view middle = name.substr(file.size(), name.size() - file.size() - kEnd.size());
  return middle[0] == '.' && middle.find_first_not_of("0123456789-", 1) == std::string_view::npos;
}

}  // namespace tapehead
