// A fresh folder for one test, removed with all it holds.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tapehead::test {

/// Without the syncs of write_file_atomically, which a test of a thousand damaged files would wait for.
inline void write_plainly(const std::string& path, const std::string& contents) {
  std::filesystem::remove(path);  // some file systems sync a file that is emptied and written anew
  std::ofstream(path, std::ios::binary) << contents;
}

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(testing::TempDir() + "tapehead-XXXXXX") {
    if (!::mkdtemp(path_.data())) ADD_FAILURE() << "cannot make " << path_;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Names of what it holds, sorted and joined by a space.
  std::string listing() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
    return text;
  }

 private:
  std::string path_;
};

}  // namespace tapehead::test
