// Pictures of attention weights for a terminal: one head large, all heads small, one head over training.
//
// Every picture obeys the same rules: rows are queries and columns are sources, the first token is top left, both are
// named `position:token`; the scale is [0, 1] in every picture; a masked source never has the colour of 0; a number
// that cannot be a weight is marked; no line is wider than the terminal. It ends with a legend, how to read it, what
// it does not say, and the command that makes it again.
#pragma once

#include <string>
#include <vector>

#include "tools/inspect/terminal.h"
#include "train/attention_map.h"

namespace tapehead {

struct Figure {
  Terminal terminal;
  std::string command;                                  // remakes the picture; printed with it. Empty: none
  std::string caption;                                  // "step 300, loss 0.0123"; printed under the title
  std::string finding = {};                             // of a head, in words; printed under its map
  int first_row = 0, first_column = 0, max_rows = 200;  // the part of a large map to show
  bool notes = true;  // how to read it and the command; off when another picture with notes follows
};

/// One head, a cell three columns wide when there is room, with each row's largest weight to four decimals.
/// Throws ShapeError when the map's sizes contradict each other.
std::string draw_head(const AttentionMap& map, const Figure& figure);

/// Every head, one row of maps a layer, each with its pattern match; the best of each kind is marked.
std::string draw_overview(const std::vector<AttentionMap>& maps, const Figure& figure);

/// One head at several moments, side by side, with loss and pattern match under each. Snapshots without this head
/// are passed over; throws ConfigError when none has it.
std::string draw_filmstrip(const std::vector<Snapshot>& snapshots, const std::string& kind, int layer, int head,
                           const Figure& figure);

}  // namespace tapehead
