// How far a training run has come: one line that updates on a terminal, a plain line now and then elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

#include "tools/inspect/terminal.h"

namespace tapehead {

struct Progress {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t step = 0, steps = 0;  // done, and to do in all
  double loss = kUnknown;             // nats a counted token
  double exact_match = kUnknown;      // of the last evaluation, 0 to 1
  double tokens_per_second = kUnknown;
  double seconds_left = kUnknown;  // when every step takes as long as those so far
};

/// "step  150/1000  loss 0.1234  exact match 98.4 %  2.1M tokens/s  0:02 left", no wider than `width`: what does not
/// fit is left out, rate first, then time left, then exact match. Unknown numbers are left out too.
std::string progress_line(const Progress& progress, int width);

/// Shows progress on a stream, which should be the standard error: results alone belong to the standard output.
class ProgressDisplay {
 public:
  /// `quiet`: shows nothing.
  ProgressDisplay(std::FILE* stream, const Terminal& terminal, bool quiet);
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  /// Cheap enough for every step: shows at most ten times a second on a terminal, every five seconds elsewhere.
  /// `seconds` since the run began.
  void update(const Progress& progress, double seconds);
  /// Shows the last state and ends its line, so that whatever is printed next starts on its own.
  void finish();

 private:
  void show();

  std::FILE* stream_;
  Terminal terminal_;
  bool quiet_, pending_ = false;  // pending_: there is something that was not shown yet
  int shown_width_ = 0;           // of the line on the terminal; 0: none
  double next_ = 0;               // seconds at which to show again
  Progress last_;
};

}  // namespace tapehead
