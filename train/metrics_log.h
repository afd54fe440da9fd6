// metrics.jsonl: one JSON object a line, each written whole, so that a killed process leaves whole lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tapehead {

/// Numbers are the shortest text that reads back as the same double; what is not finite is written as null.
class MetricsLog {
 public:
  /// Appends to the file, after dropping what is not a line of a step up to `keep_until_step`: on resume the lines of
  /// steps that will be done again and a torn last one; for a new run (0) all of it. Throws FileError.
  MetricsLog(const std::string& path, std::uint64_t keep_until_step);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;
  /// Loss in nats a counted token, gradient norm before clipping. Allocates nothing; throws FileError on a full disk.
  void training(std::uint64_t step, double loss, double learning_rate, double grad_norm, double tokens_per_second);
  void evaluation(std::uint64_t step, double loss, double token_accuracy, double exact_match);

 private:
  struct Field {
    const char* name;
    double value;
  };
  void write(std::uint64_t step, const Field* begin, const Field* end);

  std::string path_;
  int file_;
};

}  // namespace tapehead
