// A run's folder: config.toml, metrics.jsonl, last.ckpt, best.ckpt, snapshots.bin. One process at a time trains in it.
#pragma once

#include <string>
#include <vector>

#include "train/files.h"

namespace tapehead {

/// A folder that this process may write a run to, held until the object ends (the system drops the hold of a process
/// that is killed).
class RunFolder {
 public:
  RunFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder();
  const std::string& path() const { return path_; }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  int lock_;
};

/// The next free "runs/TASK-001". Creates nothing.
std::string next_run_folder(const std::string& task);
/// Makes that folder and takes it: two processes that start at once get two folders.
RunFolder new_run_folder(const std::string& task);

/// Makes `path` (with its parents) a folder that can be written to, or throws FileError: before anything is trained.
/// A folder that holds a run is refused unless `force` (its run files are removed, nothing else) or `resume` (it must
/// hold a last.ckpt), one that another process trains in always.
RunFolder prepare_run_folder(const std::string& path, bool force, bool resume);

/// True while a process trains in the folder.
bool is_training(const std::string& path);

/// `argument` itself when it is a file, its best.ckpt (else last.ckpt) when it is a run folder; throws FileError.
std::string checkpoint_of(const std::string& argument);

}  // namespace tapehead
