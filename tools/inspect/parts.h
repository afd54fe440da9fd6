// What all pictures of attention share: the look of a cell, names of tokens, the legend and the notes below.
#pragma once

#include <string>
#include <vector>

#include "tools/inspect/heatmap.h"

namespace tapehead::parts {

inline const Style kQuiet{.dim = true};
inline const Style kStrong{.bold = true};
inline const Style kAlarm{.bold = true, .reverse = true};

/// Below every picture in a terminal.
inline constexpr const char* kCaution =
    "A weight tells how much of a value entered this mixture. It does not tell why the model decides: that also takes "
    "the values, the output projection, the residual path and the layers above.";

inline constexpr Rgb kMaskedGrey{95, 95, 95};  // in small maps; no colour of viridis is grey

enum class Cell { weight, masked, broken };  // broken: NaN, infinite, outside [0, 1], or masked and not 0

/// Throws ShapeError when weights, mask and tokens do not have T x S, T x S, T and S members.
void check(const AttentionMap& map);
float weight(const AttentionMap& map, int row, int column);
Cell cell(const AttentionMap& map, int row, int column);
bool ideal(const AttentionMap& map, int row, int column);

const char* masked_mark(const Terminal& terminal);  // one cell wide
/// Tenths of a weight, 0 to 9.
char digit(float weight);
/// A full cell of `width` columns.
void add_cell(Line& line, const AttentionMap& map, int row, int column, int width, const Terminal& terminal);

/// "3:b", the token made visible and cut to `token_cells`.
std::string label(const std::vector<std::string>& tokens, int position, int token_cells, const Terminal& terminal);
std::string kind_name(const std::string& kind);  // "decoder self-attention"
std::string number(double value);                // four decimals; "nan", "inf"

/// What occurs in the maps drawn, and so belongs into the legend.
struct Occurring {
  bool masked = false, ideal = false, broken = false;
  void look_at(const AttentionMap& map);
};
/// The scale with numbers, and the marks that occur. `cell_width` of the widest cells drawn; 0: half blocks alone.
void add_legend(std::vector<Line>& lines, const Occurring& marks, int cell_width, bool grey_masked,
                const Terminal& terminal);
/// `text` broken into lines, in the quiet style unless `style` is given.
void add_text(std::vector<Line>& lines, const std::string& text, const Terminal& terminal, const Style& style = kQuiet);
/// How to read, what it does not say, the command.
void add_notes(std::vector<Line>& lines, const Figure& figure);
/// One line for each broken cell and each other row that does not sum to 1 within S x 1e-5, but at most a few.
void add_warnings(std::vector<Line>& lines, const AttentionMap& map, const Terminal& terminal);
bool sums_to_one(const AttentionMap& map, int row);

}  // namespace tapehead::parts
