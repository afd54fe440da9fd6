#include "tools/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/inspect/text.h"

namespace tapehead {

namespace {

// "950", "12.3k", "2.1M": three digits are enough for a rate.
std::string rate(double per_second) {
  if (per_second < 1000) return fmt::format("{:.0f}", per_second);
  if (per_second < 1e6) return fmt::format("{:.{}f}k", per_second / 1e3, per_second < 1e5 ? 1 : 0);
  return fmt::format("{:.1f}M", per_second / 1e6);
}

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(std::min(seconds, 3.6e9)));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

// 0.9999 is not yet 100 %.
std::string share(double exact_match) {
  return exact_match >= 1 ? "100 %" : fmt::format("{:.1f} %", std::floor(exact_match * 1000) / 10);
}

}  // namespace

std::string progress_line(const Progress& p, int width) {
  struct Part {
    std::string text;
    int worth;  // the least worthy part goes first
  };
  std::vector<Part> parts;
  const auto digits = fmt::formatted_size("{}", p.steps);
  parts.push_back({fmt::format("step {:>{}}/{}", p.step, digits, p.steps), 4});
  if (!std::isnan(p.loss)) parts.push_back({fmt::format("loss {:.4f}", p.loss), 3});
  if (!std::isnan(p.exact_match)) parts.push_back({"exact match " + share(p.exact_match), 2});
  if (!std::isnan(p.tokens_per_second)) parts.push_back({rate(p.tokens_per_second) + " tokens/s", 0});
  if (!std::isnan(p.seconds_left)) parts.push_back({duration(p.seconds_left) + " left", 1});
  for (;;) {
    std::string line;
    for (const Part& part : parts) line += (line.empty() ? "" : "  ") + part.text;
    if (parts.size() == 1 || text::width(line) <= width) return text::cut(line, width, false);
    parts.erase(
        std::min_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.worth < b.worth; }));
  }
}

ProgressDisplay::ProgressDisplay(std::FILE* stream, const Terminal& terminal, bool quiet)
    : stream_(stream), terminal_(terminal), quiet_(quiet), next_(terminal.is_terminal ? 0 : 5) {}

ProgressDisplay::~ProgressDisplay() {
  try {
    finish();
  } catch (const std::exception&) {
    // Out of memory while something else fails already: a line of progress less.
    shown_width_ = 0;
  }
}

void ProgressDisplay::update(const Progress& progress, double seconds) {
  if (quiet_) return;
  last_ = progress;
  pending_ = true;
  if (seconds < next_) return;
  next_ = seconds + (terminal_.is_terminal ? 0.1 : 5);
  show();
}

void ProgressDisplay::show() {
  pending_ = false;
  if (!terminal_.is_terminal) {
    std::fputs((progress_line(last_, std::numeric_limits<int>::max()) + "\n").c_str(), stream_);
    return;
  }
  // The last column stays free: some terminals go to the next line once it is written. Spaces, not an escape
  // sequence, clear what is left of a longer line, so that a dumb terminal manages too.
  const std::string line = progress_line(last_, terminal_.width - 1);
  const int width = text::width(line);
  std::fputs(fmt::format("\r{:<{}}", line, std::max(width, shown_width_)).c_str(), stream_);
  std::fflush(stream_);
  shown_width_ = width;
}

void ProgressDisplay::finish() {
  if (quiet_) return;
  const bool counts_down = shown_width_ > 0 && !std::isnan(last_.seconds_left);
  last_.seconds_left = Progress::kUnknown;  // it is over, perhaps before the last step
  if (pending_ || counts_down) show();
  if (shown_width_ > 0) {
    std::fputs("\n", stream_);
    std::fflush(stream_);
  }
  shown_width_ = 0;
}

}  // namespace tapehead
