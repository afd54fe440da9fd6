// metrics.jsonl: one JSON object a line, each written whole, so that a killed process leaves whole lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

  /// One head's measures; `names` and `values` go together.
  void head(std::uint64_t step, const std::string& kind, int layer, int head, const std::vector<std::string>& names,
            const std::vector<double>& values);

 private:
  struct Field {
    const char* name;
    double value;
  };
  void write(std::uint64_t step, const Field* begin, const Field* end);
  void append(const char* line, std::size_t size);

  std::string path_;
  int file_;
};

/// What a metrics.jsonl says of a run; NaN where a number is null.
struct Metrics {
  struct Step {
    std::uint64_t step;
    double loss;
  };
  struct Evaluation {
    std::uint64_t step;
    double loss, token_accuracy, exact_match;
  };
  std::vector<Step> steps;
  std::vector<Evaluation> evaluations;
};
/// Passes over lines that are none of these. Throws FileError when there is no such file.
Metrics read_metrics(const std::string& path);

}  // namespace tapehead
