// One head, large: the header with positions and tokens, a line a query, the largest weight of each.
#include "tools/inspect/heatmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/inspect/parts.h"
#include "tools/inspect/text.h"

namespace tapehead {

namespace {

using namespace parts;

constexpr int kMostTokenRows = 6;  // of a token written downwards

int longest(const std::vector<std::string>& tokens, bool unicode) {
  int cells = 0;
  for (const std::string& t : tokens) cells = std::max(cells, text::width(text::token(t, unicode)));
  return cells;
}

/// The largest proper weight of a row, -1 when there is none.
int largest(const AttentionMap& map, int row) {
  int best = -1;
  for (int j = 0; j < map.columns; ++j)
    if (cell(map, row, j) == Cell::weight && (best < 0 || weight(map, row, j) > weight(map, row, best))) best = j;
  return best;
}

class HeadPicture {
 public:
  HeadPicture(const AttentionMap& map, const Figure& figure) : map_(map), terminal_(figure.terminal) {
    first_row_ = std::clamp(figure.first_row, 0, map.rows - 1);
    first_column_ = std::clamp(figure.first_column, 0, map.columns - 1);
    rows_ = std::min(map.rows - first_row_, std::max(figure.max_rows, 1));
    columns_ = map.columns - first_column_;
    lay_out();
  }

  std::vector<Line> draw() const {
    std::vector<Line> lines;
    add_header(lines);
    for (int i = first_row_; i < first_row_ + rows_; ++i) lines.push_back(row(i));
    add_crop_note(lines);
    return lines;
  }
  int cell_width() const { return cell_; }

 private:
  void lay_out();
  bool all_rows_sum() const;
  void add_header(std::vector<Line>& lines) const;
  std::vector<Line> column_names(bool positions) const;
  Line row(int i) const;
  std::string readout(int i) const;
  void add_crop_note(std::vector<Line>& lines) const;

  const AttentionMap& map_;
  const Terminal& terminal_;
  int first_row_, first_column_, rows_, columns_;  // the part shown
  int token_cells_, gutter_, cell_, readout_;      // widths; readout_ 0: none
};

bool HeadPicture::all_rows_sum() const {
  for (int i = first_row_; i < first_row_ + rows_; ++i)
    if (!sums_to_one(map_, i)) return false;
  return true;
}

// Wide cells when tokens need them and all fits; else 3, 2, 1 wide; else fewer columns.
void HeadPicture::lay_out() {
  const int width = terminal_.width;
  const auto digits = [](int n) { return static_cast<int>(fmt::formatted_size("{}", n)); };
  const int position_cells = digits(std::max(map_.rows, map_.columns) - 1);
  const int token = longest(map_.column_tokens, terminal_.unicode);
  token_cells_ = std::clamp(longest(map_.row_tokens, terminal_.unicode), 1, std::max(width / 6, 2));
  const int label_cells = digits(map_.rows - 1) + 1 + token_cells_;
  gutter_ = width >= 40 ? std::max(label_cells + 1, 7) : label_cells + 1;

  const int full = 2 + position_cells + 1 + std::min(token, width / 6) + 1 + 6;  // "  12:b 0.9712"
  const int room = width - gutter_ - (all_rows_sum() ? 0 : 2);                   // for the mark of a bad row
  const int wanted = std::clamp(std::max(token, position_cells) + 1, 3, 6);
  if (columns_ * wanted + full <= room) {
    cell_ = wanted;
  } else {
    cell_ = std::clamp(room / columns_, 1, 3);
    columns_ = std::min(columns_, room / cell_);
  }
  const int left = room - columns_ * cell_;
  readout_ = left >= full ? full : left >= 8 ? 8 : 0;
}

// One line when every name fits beside its neighbour, else downwards.
std::vector<Line> HeadPicture::column_names(bool positions) const {
  std::vector<std::string> names;
  int widest = 0;
  for (int j = first_column_; j < first_column_ + columns_; ++j) {
    names.push_back(positions ? std::to_string(j) : map_.column_tokens[static_cast<std::size_t>(j)]);
    widest = std::max(widest, text::width(text::token(names.back(), terminal_.unicode)));
  }
  const bool across = widest < cell_ || widest == 1;
  std::vector<std::vector<std::string>> stacks;
  std::size_t height = 0;
  for (const std::string& name : names) {
    if (across)
      stacks.push_back({text::token(name, terminal_.unicode)});
    else
      stacks.push_back(text::downwards(name, cell_, kMostTokenRows, terminal_.unicode));
    height = std::max(height, stacks.back().size());
  }
  std::vector<Line> lines(height);
  for (std::size_t i = 0; i < height; ++i)
    for (const auto& stack : stacks) {
      const std::size_t above = positions ? height - stack.size() : 0;  // numbers end on one line, words begin on one
      lines[i].add(text::centre(i >= above && i - above < stack.size() ? stack[i - above] : "", cell_), kQuiet);
    }
  return lines;
}

void HeadPicture::add_header(std::vector<Line>& lines) const {
  const bool unicode = terminal_.unicode;
  lines.push_back(Line().pad(gutter_).add(unicode ? "source →" : "source >"));
  std::vector<Line> names = column_names(true);
  const std::vector<Line> tokens = column_names(false);
  names.insert(names.end(), tokens.begin(), tokens.end());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool last = i + 1 == names.size();
    Line line(last && gutter_ >= 7 ? (unicode ? "query ↓" : "query v") : "");
    line.pad(gutter_).add(names[i]);
    if (last && readout_ > 0) line.add(text::pad_left(readout_ > 9 ? "largest" : "max", readout_), kQuiet);
    lines.push_back(line);
  }
}

std::string HeadPicture::readout(int i) const {
  const int j = largest(map_, i);
  if (readout_ == 0 || j < 0) return {};
  const std::string value = number(weight(map_, i, j));
  if (readout_ == 8) return value;
  return label(map_.column_tokens, j, terminal_.width / 6, terminal_) + " " + value;
}

Line HeadPicture::row(int i) const {
  const auto digits = static_cast<int>(fmt::formatted_size("{}", map_.rows - 1));
  const std::string name = label(map_.row_tokens, i, token_cells_, terminal_);
  const int position = static_cast<int>(fmt::formatted_size("{}", i));
  // Positions end in one column, tokens begin in one.
  std::string shown =
      text::pad_right(std::string(static_cast<std::size_t>(digits - position), ' ') + name, digits + 1 + token_cells_);
  Line line(text::pad_right(text::pad_left(shown, gutter_ - 1), gutter_), kQuiet);
  for (int j = first_column_; j < first_column_ + columns_; ++j) add_cell(line, map_, i, j, cell_, terminal_);
  line.add(text::pad_left(readout(i), readout_));
  if (!sums_to_one(map_, i)) line.add(" ").add("!", kAlarm);
  return line;
}

void HeadPicture::add_crop_note(std::vector<Line>& lines) const {
  if (columns_ < map_.columns) {
    const int needed = terminal_.width + map_.columns - columns_ * cell_;
    add_text(lines,
             fmt::format("Shown: sources {} to {} of {}. A window {} columns wide shows all.", first_column_,
                         first_column_ + columns_ - 1, map_.columns, needed),
             terminal_, kStrong);
  }
  if (rows_ < map_.rows)
    add_text(lines, fmt::format("Shown: queries {} to {} of {}.", first_row_, first_row_ + rows_ - 1, map_.rows),
             terminal_, kStrong);
}

}  // namespace

std::string draw_head(const AttentionMap& map, const Figure& figure) {
  check(map);
  const Terminal& terminal = figure.terminal;
  std::vector<Line> lines;
  add_text(lines,
           fmt::format("L{}H{}: {}, layer {}, head {}", map.layer, map.head, kind_name(map.kind), map.layer, map.head),
           terminal, kStrong);
  const double match = pattern_match(map);
  if (std::isfinite(match)) add_text(lines, "pattern match " + number(match), terminal, {});
  add_text(lines, text::line(figure.caption, terminal.unicode), terminal, {});
  lines.emplace_back();
  if (map.rows == 0 || map.columns == 0) {
    add_text(lines, fmt::format("There is nothing to draw: {} queries, {} sources.", map.rows, map.columns), terminal);
    return paint(lines, terminal.colour);
  }
  const HeadPicture picture(map, figure);
  for (const Line& line : picture.draw()) lines.push_back(line);
  add_warnings(lines, map, terminal);
  if (!figure.finding.empty()) lines.emplace_back();
  add_text(lines, figure.finding, terminal, {});
  lines.emplace_back();
  Occurring marks;
  marks.look_at(map);
  add_legend(lines, marks, picture.cell_width(), false, terminal);
  add_notes(lines, figure);
  return paint(lines, terminal.colour);
}

}  // namespace tapehead
