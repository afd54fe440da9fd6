// A run's folder: config.toml, metrics.jsonl, last.ckpt, best.ckpt, snapshots.bin.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace tapehead {

/// The next free "runs/TASK-001". Creates nothing.
std::string next_run_folder(const std::string& task);
/// Makes `path` (with its parents) a folder that can be written to, or throws FileError: before anything is trained.
/// A folder that holds a run is refused unless `force` (its run files are removed) or `resume`.
void prepare_run_folder(const std::string& path, bool force, bool resume);
/// `argument` itself when it is a file, its best.ckpt (else last.ckpt) when it is a run folder; throws FileError.
std::string checkpoint_of(const std::string& argument);
/// Whole contents written beside, synced, renamed.
void write_file_atomically(const std::string& path, const std::string& contents);
std::string read_file(const std::string& path);

/// metrics.jsonl: one JSON object a line, flushed line by line; numbers that are not finite are written as null.
class MetricsLog {
 public:
  /// Appends; on resume first drops lines of steps after `step`.
  MetricsLog(const std::string& path, std::uint64_t keep_until_step);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;
  void training(std::uint64_t step, double loss, double learning_rate, double grad_norm, double tokens_per_second);
  void evaluation(std::uint64_t step, double loss, double token_accuracy, double exact_match);

 private:
  std::FILE* file_;
};

}  // namespace tapehead
