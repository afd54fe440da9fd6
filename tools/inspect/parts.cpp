#include "tools/inspect/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autograd/error.h"
#include "tools/inspect/text.h"

namespace tapehead::parts {

void check(const AttentionMap& map) {
  const auto rows = static_cast<std::size_t>(std::max(map.rows, 0));
  const auto columns = static_cast<std::size_t>(std::max(map.columns, 0));
  const bool tokens = map.row_tokens.size() == rows && map.column_tokens.size() == columns;
  const bool fits = map.rows >= 0 && map.columns >= 0 && map.weights.size() == rows * columns &&
                    map.visible.size() == rows * columns && (map.ideal.empty() || map.ideal.size() == rows) &&
                    std::all_of(map.ideal.begin(), map.ideal.end(), [&](int column) { return column < map.columns; });
  if (fits && tokens) return;
  throw ShapeError(error_line(
      "attention map", fmt::format("{} x {} cells were announced, but there are {} weights, {} mask entries, "
                                   "{} row tokens, {} column tokens and {} ideal columns",
                                   map.rows, map.columns, map.weights.size(), map.visible.size(), map.row_tokens.size(),
                                   map.column_tokens.size(), map.ideal.size())));
}

namespace {
std::size_t at(const AttentionMap& map, int row, int column) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(map.columns) + static_cast<std::size_t>(column);
}

double row_sum(const AttentionMap& map, int row) {
  double sum = 0;
  for (int j = 0; j < map.columns; ++j) sum += weight(map, row, j);
  return sum;
}
}  // namespace

float weight(const AttentionMap& map, int row, int column) { return map.weights[at(map, row, column)]; }

Cell cell(const AttentionMap& map, int row, int column) {
  constexpr float kSlack = 1e-5f;  // rounding
  const float w = weight(map, row, column);
  if (!map.visible[at(map, row, column)]) return w == 0 ? Cell::masked : Cell::broken;
  return w >= -kSlack && w <= 1 + kSlack ? Cell::weight : Cell::broken;  // NaN fails both comparisons
}

bool ideal(const AttentionMap& map, int row, int column) {
  return !map.ideal.empty() && map.ideal[static_cast<std::size_t>(row)] == column;
}

bool sums_to_one(const AttentionMap& map, int row) {
  return std::abs(row_sum(map, row) - 1) <= map.columns * 1e-5;  // false for NaN
}

// --- cells

const char* masked_mark(const Terminal& terminal) { return terminal.unicode ? "·" : "."; }

char digit(float weight) {
  const double tenths = std::floor(static_cast<double>(weight) * 10 + 1e-5);  // 0.7f lies just below 0.7
  return static_cast<char>('0' + static_cast<int>(std::clamp(tenths, 0.0, 9.0)));
}

namespace {
// The frame of an ideal cell around `inside`: "[9]", "9*" where there is no room for two sides.
std::string framed(const std::string& inside, int width) {
  if (width >= 3) return "[" + text::centre(inside, width - 2) + "]";
  if (width == 2) return inside == " " ? "[]" : inside + "*";
  return inside == " " ? "*" : inside;
}
}  // namespace

void add_cell(Line& line, const AttentionMap& map, int row, int column, int width, const Terminal& terminal) {
  const float w = weight(map, row, column);
  switch (cell(map, row, column)) {
    case Cell::masked:
      line.add(text::centre(masked_mark(terminal), width), kQuiet);
      return;
    case Cell::broken:
      line.add(text::centre("!", width), kAlarm);
      return;
    case Cell::weight:
      break;
  }
  const bool colour = terminal.colour != Colour::none;
  const std::string inside(1, colour ? ' ' : digit(w));
  const std::string shown = ideal(map, row, column) ? framed(inside, width) : text::centre(inside, width);
  if (!colour) {
    line.add(shown);
    return;
  }
  const Rgb paper = viridis(w);
  line.add(shown, {.ink = ink_on(paper), .paper = paper});
}

// --- names

std::string label(const std::vector<std::string>& tokens, int position, int token_cells, const Terminal& terminal) {
  const std::string name = text::token(tokens[static_cast<std::size_t>(position)], terminal.unicode);
  return fmt::format("{}:{}", position, text::cut(name, token_cells, terminal.unicode));
}

std::string kind_name(const std::string& kind) {
  if (kind == "cross") return "cross-attention";
  return text::line(kind, false) + " self-attention";
}

std::string number(double value) { return fmt::format("{:.4f}", value); }

// --- below the picture

void Occurring::look_at(const AttentionMap& map) {
  for (int i = 0; i < map.rows; ++i)
    for (int j = 0; j < map.columns; ++j) {
      const Cell c = cell(map, i, j);
      masked |= c == Cell::masked;
      broken |= c == Cell::broken;
      ideal |= c == Cell::weight && parts::ideal(map, i, j);
    }
}

namespace {

// Entries side by side, on as many lines as they need.
void add_entries(std::vector<Line>& lines, const std::vector<Line>& entries, int width) {
  Line current;
  for (const Line& entry : entries) {
    if (current.width() > 0 && current.width() + 3 + entry.width() > width) {
      lines.push_back(current);
      current = {};
    }
    if (current.width() > 0) current.add("   ");
    current.add(entry);
  }
  if (current.width() > 0) lines.push_back(current);
}

Line scale_entry(const Terminal& terminal) {
  if (terminal.colour == Colour::none) return Line("0-9: weight x 10");
  Line entry("weight ");
  const int steps = terminal.width >= 50 ? 5 : terminal.width >= 26 ? 2 : 1;
  for (int i = 0; i <= steps; ++i) {
    const double w = static_cast<double>(i) / steps;
    const Rgb paper = viridis(w);
    entry.add(fmt::format(" {:.1f} ", w), {.ink = ink_on(paper), .paper = paper});
  }
  return entry;
}

}  // namespace

void add_legend(std::vector<Line>& lines, const Occurring& marks, int cell_width, bool grey_masked,
                const Terminal& terminal) {
  std::vector<Line> entries{scale_entry(terminal)};
  const bool colour = terminal.colour != Colour::none;
  if (marks.masked) {
    const Line mark = grey_masked ? Line("  ", {.paper = kMaskedGrey}) : Line(masked_mark(terminal), kQuiet);
    entries.push_back(Line().add(mark).add(" masked"));
  }
  const bool room = cell_width >= 2 || (cell_width == 1 && colour);
  if (marks.ideal && room)
    entries.emplace_back(framed(" ", colour ? cell_width : std::max(cell_width, 3)) + " rule looks here");
  if (marks.ideal && room && !colour && cell_width == 2) entries.back() = Line("* rule looks here");
  if (marks.broken) entries.push_back(Line("!", kAlarm).add(" not a weight"));
  add_entries(lines, entries, terminal.width);
}

void add_text(std::vector<Line>& lines, const std::string& text, const Terminal& terminal, const Style& style) {
  for (const std::string& line : text::wrap(text, terminal.width)) lines.emplace_back(line, style);
}

void add_notes(std::vector<Line>& lines, const Figure& figure) {
  if (!figure.notes) return;
  add_text(lines,
           "Rows are queries, columns are sources. Read along a row: its weights say how that query mixes the values, "
           "and sum to 1. A masked source has weight 0.",
           figure.terminal);
  add_text(lines, kCaution, figure.terminal);
  if (figure.command.empty()) return;
  const std::string command = "$ " + text::line(figure.command, figure.terminal.unicode);
  for (const std::string& line : text::wrap_command(command, figure.terminal.width, "    ")) lines.emplace_back(line);
}

void add_warnings(std::vector<Line>& lines, const AttentionMap& map, const Terminal& terminal) {
  constexpr int kMost = 5;
  int found = 0;
  const auto warn = [&](const std::string& text) {
    if (++found <= kMost) add_text(lines, "! " + text, terminal, kStrong);
  };
  for (int i = 0; i < map.rows; ++i) {
    const std::string row = "query " + label(map.row_tokens, i, 12, terminal);
    const int before = found;
    for (int j = 0; j < map.columns; ++j)
      if (cell(map, i, j) == Cell::broken)
        warn(fmt::format("{}, source {}: {} is not a weight{}", row, label(map.column_tokens, j, 12, terminal),
                         weight(map, i, j), map.visible[at(map, i, j)] ? "" : " of a masked source"));
    if (found == before && !sums_to_one(map, i))
      warn(fmt::format("{}: the weights sum to {:.6g}, not to 1", row, row_sum(map, i)));
  }
  if (found > kMost) add_text(lines, fmt::format("! and {} more", found - kMost), terminal, kStrong);
}

}  // namespace tapehead::parts
