// Everything that a report shows of a trained model, gathered: its attention over training, and what is computed
// afterwards from the parameters that were kept.
#pragma once

#include "tools/inspect/report.h"
#include "tools/session.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct ExamineOptions {
  std::string run;           // a run folder or a checkpoint, as the user wrote it
  std::string command;       // that makes the same report again
  AttentionHistory history;  // of the run, or none
  std::optional<Batch> own;  // a sequence to show in the place of the run's own
  int threads = 1;
};
/// Throws FileError when the run's files do not fit together.
Report examine(Session& session, const ExamineOptions& options);

/// How a report may name a file or folder: without the folders above it when it was given from the root, since a page
/// that is passed on must not tell where a user keeps things.
std::string name_in_report(const std::string& path);

/// How the ideal pattern of a task is called, as a label of heads: "copy source", "lookup match".
std::string rule_label(const std::string& task);

/// A run's snapshots; none when `run` is a checkpoint or keeps none. Throws FileError for a damaged file.
AttentionHistory history_of(const std::string& run);

}  // namespace tapehead::inline TAPEHEAD_REAL
