#include "train/metrics_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "autograd/error.h"
#include "train/files.h"

namespace tapehead {

namespace {

bool is_line_until(const std::string& line, std::uint64_t step) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_unsigned()) return false;
  return json["step"].get<std::uint64_t>() <= step;
}

void drop_lines_after(const std::string& path, std::uint64_t step) {
  std::istringstream lines(read_file(path));
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    if (!lines.eof() && is_line_until(line, step)) kept += line + '\n';  // eof: no newline, so torn
  write_file_atomically(path, kept);
}

}  // namespace

MetricsLog::MetricsLog(const std::string& path, std::uint64_t keep_until_step) : path_(path) {
  if (std::filesystem::exists(path)) drop_lines_after(path, keep_until_step);
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) throw FileError(error_line("metrics", "cannot write " + path + ": " + system_message(errno)));
}

MetricsLog::~MetricsLog() { ::close(file_); }

void MetricsLog::training(std::uint64_t step, double loss, double learning_rate, double grad_norm,
                          double tokens_per_second) {
  const std::array<Field, 4> fields = {
      {{"loss", loss}, {"lr", learning_rate}, {"grad_norm", grad_norm}, {"tokens_per_second", tokens_per_second}}};
  write(step, fields.begin(), fields.end());
}

void MetricsLog::evaluation(std::uint64_t step, double loss, double token_accuracy, double exact_match) {
  const std::array<Field, 3> fields = {
      {{"eval_loss", loss}, {"token_accuracy", token_accuracy}, {"exact_match", exact_match}}};
  write(step, fields.begin(), fields.end());
}

void MetricsLog::head(std::uint64_t step, const std::string& kind, int layer, int head,
                      const std::vector<std::string>& names, const std::vector<double>& values) {
  std::string line = fmt::format(R"({{"step": {}, "kind": "{}", "layer": {}, "head": {})", step, kind, layer, head);
  for (std::size_t i = 0; i < names.size(); ++i)
    line += std::isfinite(values[i]) ? fmt::format(", \"{}\": {}", names[i], values[i])
                                     : fmt::format(", \"{}\": null", names[i]);
  line += "}\n";
  append(line.data(), line.size());
}

void MetricsLog::write(std::uint64_t step, const Field* begin, const Field* end) {
  std::array<char, 512> line;  // a field takes at most 20 + 24 characters; every step writes one, without the heap
  char* at = fmt::format_to(line.data(), "{{\"step\": {}", step);
  for (const Field* field = begin; field != end; ++field)
    at = std::isfinite(field->value) ? fmt::format_to(at, ", \"{}\": {}", field->name, field->value)
                                     : fmt::format_to(at, ", \"{}\": null", field->name);
  at = fmt::format_to(at, "}}\n");
  append(line.data(), static_cast<std::size_t>(at - line.data()));
}

void MetricsLog::append(const char* line, std::size_t size) {
  ssize_t written;
  do written = ::write(file_, line, size);  // one call: the whole line or, on a full disk, a torn one
  while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(size))
    throw FileError(error_line(
        "metrics", "cannot write " + path_ + ": " + (written < 0 ? system_message(errno) : "the disk is full")));
}

Metrics read_metrics(const std::string& path) {
  Metrics metrics;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_unsigned()) continue;
    const auto step = json["step"].get<std::uint64_t>();
    const auto number = [&](const char* field) {
      const auto found = json.find(field);
      return found != json.end() && found->is_number() ? found->get<double>()
                                                       : std::numeric_limits<double>::quiet_NaN();
    };
    if (json.contains("eval_loss"))
      metrics.evaluations.push_back({step, number("eval_loss"), number("token_accuracy"), number("exact_match")});
    else if (json.contains("loss"))
      metrics.steps.push_back({step, number("loss")});
  }
  return metrics;
}

}  // namespace tapehead
