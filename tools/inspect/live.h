// The report of a run that is still training, served to a browser on this machine.
//
// Only the loopback address is bound, every path begins with a random token, another Host than ours is refused (DNS
// rebinding), and no header lets another site read along. The server has a thread of its own and only copies of what
// training made, so looking changes no result.
#pragma once

#include <memory>

#include "tools/inspect/report.h"

namespace tapehead {

class LiveServer {
 public:
  /// `base`: what is known before the first step. Throws Error when no port can be had.
  explicit LiveServer(Report base);
  /// Stays until a page that was asking a moment ago could take the end along.
  ~LiveServer();
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  const std::string& url() const;  // "http://127.0.0.1:43211/3f2a.../"

  void add(const Metrics::Step& step);
  void add(const Metrics::Evaluation& evaluation);
  /// The snapshots of the run's history that are new.
  void add(const AttentionHistory& history);
  double seconds() const { return seconds_; }  // that training spent in add()
  double serving_seconds() const;              // that the server's threads worked on pages meanwhile

 private:
  struct Inside;
  template <class F>
  void change(F f);
  std::unique_ptr<Inside> inside_;
  double seconds_ = 0;
};

}  // namespace tapehead
