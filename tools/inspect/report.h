// report.html: one offline page that shows a run, its heads and their training. This file says what is on it; the page
// itself is tools/inspect/page/, joined and embedded by CMake.
//
// Tokens and names are hostile: all data stand in inert blocks in which nothing can end the block, and the page writes
// them as text alone. A Content-Security-Policy by hash lets the page's own script and style run and nothing else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/attention_history.h"
#include "train/head_place.h"
#include "train/metrics_log.h"

namespace tapehead {

/// What a model does with some heads changed, over unseen sequences.
struct Outcome {
  double loss = 0, exact_match = 0;
};

/// vocabulary x vocabulary, of one head: what attends to what, and what a token read makes likely.
struct HeadCircuits {
  std::vector<float> qk, ov;
  double copying = 0;
};

/// How much of what head `from` writes head `to` reads by its queries, keys and values; heads by their index.
struct HeadComposition {
  std::size_t from = 0, to = 0;
  double q = 0, k = 0, v = 0;
};

/// What each head's output of the shown sequence does in another one; m as in train/interventions.h.
struct HeadPatching {
  double clean = 0, corrupt = 0;  // m of the two
  std::vector<double> recovered;  // by head
};

/// What is computed afterwards of a moment whose parameters were kept.
struct ReportDetail {
  std::size_t snapshot = 0;                    // of the history
  std::vector<HeadProjections> projections;    // of each head
  std::vector<HeadEvidence> evidence;          // of each head, or none
  Outcome base;                                // nothing changed
  std::vector<Outcome> zeroed, averaged;       // by head: without it, with its mean output; or none
  std::vector<double> importance;              // by head, or none
  std::vector<std::vector<float>> knock_outs;  // by head, [T, S]: what masking a cell adds to the loss; or none
  std::vector<LensLayer> lens;                 // what the model would say after each layer
  std::vector<Attribution> attributions;       // of each row that counts, or none
  std::vector<HeadCircuits> circuits;          // by head, or none
  std::vector<HeadComposition> compositions;   // or none
  std::optional<HeadPatching> patching;        // against Report::corrupt
};

/// A sequence with what the model was asked for and what it said, row by row.
struct WorkedExample {
  std::vector<std::string> source;                       // of an encoder-decoder, else none
  std::vector<std::string> inputs, expected, predicted;  // by row; expected is empty where the loss does not count
};

struct Report {
  std::string title, subtitle, command, config;
  std::string task, summary, rule;  // rule: how the ideal pattern is called, as a label of heads
  std::vector<NamedShape> parameters;
  std::int64_t parameter_count = 0;
  std::optional<Outcome> learned;  // of the held-out sequences at best_step
  std::uint64_t best_step = 0;
  std::int64_t held_out = 0, ablation_sequences = 0;
  WorkedExample example, corrupt;  // corrupt: the sequence that heads are patched into, or none
  AttentionHistory history;
  std::vector<ReportDetail> details;  // by snapshot
  std::vector<std::string> vocabulary;
  Metrics metrics;
  std::vector<std::string> notes;
  std::string live;  // the origin that a page of a run in progress may ask; empty: none
};

/// The page, of at most `budget` bytes: with fewer snapshots and details, evenly among those there are, when all do not
/// fit, and it says so. Throws ConfigError when not even one fits.
std::string report_html(Report report, std::size_t budget);

/// What a live page asks for: the snapshots of `part`, and its curves, as JSON with the packed numbers in it;
/// `done`: there will be no more.
std::string report_growth(const Report& part, bool done);

/// JSON that may stand in a script element: `<`, `>`, `&`, U+2028 and U+2029 are escaped.
std::string inert(const std::string& json);
std::string base64(const std::string& bytes);

}  // namespace tapehead
