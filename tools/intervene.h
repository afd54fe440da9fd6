// What inspect does beside looking: takes heads away, moves their outputs from one sequence to another, reads the
// residual path before its end.
#pragma once

#include "tools/command.h"
#include "tools/session.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct InterventionFlags {
  std::vector<std::string> ablate, knock_out;
  std::string patch;
  bool lens = false, circuits = false;
  std::optional<std::int64_t> attribute;
  bool any() const { return !ablate.empty() || !knock_out.empty() || !patch.empty() || lens || circuits || attribute; }
};
void add_intervention_options(Options& options, InterventionFlags& flags);

/// Carries out what the flags ask for, on `sequence` where it is about one, on `unseen` where it is about many.
/// Throws ConfigError before anything is printed.
void run_interventions(const InterventionFlags& flags, Session& session, const Batch& sequence, const Batch& unseen,
                       int threads, Command& command);

}  // namespace tapehead::inline TAPEHEAD_REAL
