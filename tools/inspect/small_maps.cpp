// Many maps at once: every head of a model, or one head over training. A map is drawn as small as its cells can be
// told apart: two queries a line by half blocks where the terminal has them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autograd/error.h"
#include "tools/inspect/heatmap.h"
#include "tools/inspect/parts.h"
#include "tools/inspect/text.h"

namespace tapehead {

namespace {

using namespace parts;

constexpr int kGap = 3;  // between maps

struct Panel {
  std::vector<Line> lines;
  int width = 0;
};

/// How a cell is drawn: one column and half a line, one column and a line, or two columns and a line (nearly square).
enum class Size { half, narrow, square };

int columns_of(Size size) { return size == Size::square ? 2 : 1; }

// Two cells, one above the other: the upper is the ink of "▀", the lower the paper. `lower` -1: there is none.
void add_halves(Line& line, const AttentionMap& map, int upper, int lower, int column) {
  const Cell a = cell(map, upper, column), b = lower < 0 ? a : cell(map, lower, column);
  if (a == Cell::broken || b == Cell::broken) {
    line.add("!", kAlarm);
    return;
  }
  const auto colour = [&](int row, Cell c) {
    return c == Cell::masked ? kMaskedGrey : viridis(weight(map, row, column));
  };
  Style style{.ink = colour(upper, a)};
  if (lower >= 0) style.paper = colour(lower, b);
  line.add("▀", style);
}

// A cell of a line of its own. Masked cells are as grey as those of half blocks are.
void add_small_cell(Line& line, const AttentionMap& map, int row, int column, int width, const Terminal& terminal) {
  if (terminal.colour != Colour::none && cell(map, row, column) == Cell::masked)
    line.add(std::string(static_cast<std::size_t>(width), ' '), {.paper = kMaskedGrey});
  else
    add_cell(line, map, row, column, width, terminal);
}

struct Crop {
  int rows, columns;
};

Panel small_map(const AttentionMap& map, Size size, Crop crop, const Terminal& terminal) {
  crop = {std::min(crop.rows, map.rows), std::min(crop.columns, map.columns)};
  Panel panel;
  panel.width = crop.columns * columns_of(size);
  for (int i = 0; i < crop.rows; i += size == Size::half ? 2 : 1) {
    Line line;
    for (int j = 0; j < crop.columns; ++j) {
      if (size == Size::half)
        add_halves(line, map, i, i + 1 < crop.rows ? i + 1 : -1, j);
      else
        add_small_cell(line, map, i, j, columns_of(size), terminal);
    }
    panel.lines.push_back(line);
  }
  return panel;
}

void add_side_by_side(std::vector<Line>& lines, const std::vector<Panel>& panels) {
  std::size_t height = 0;
  for (const Panel& p : panels) height = std::max(height, p.lines.size());
  for (std::size_t i = 0; i < height; ++i) {
    Line line;
    int left = 0;
    for (const Panel& p : panels) {
      line.pad(left);
      if (i < p.lines.size()) line.add(p.lines[i]);
      left += p.width + kGap;
    }
    lines.push_back(line);
  }
}

/// Maps drawn together, each with lines above and below.
struct Captioned {
  const AttentionMap* map;
  std::vector<Line> above, below;
};

struct Arrangement {
  Size size;
  Crop crop;   // of the largest
  int a_line;  // maps side by side
};

/// How to draw `maps`, of which `count` belong together.
Arrangement arrange(const std::vector<Captioned>& maps, int count, const Figure& figure) {
  const Terminal& terminal = figure.terminal;
  int rows = 0, columns = 0, caption = 0;
  for (const Captioned& m : maps) {
    rows = std::max(rows, m.map->rows);
    columns = std::max(columns, m.map->columns);
    for (const auto* lines : {&m.above, &m.below})
      for (const Line& line : *lines) caption = std::max(caption, line.width());
  }
  const auto fits = [&](Size size) {
    const int width = std::max(columns * columns_of(size), caption);
    return std::max((terminal.width + kGap) / (width + kGap), 0);
  };
  const Size small = terminal.colour != Colour::none && terminal.unicode ? Size::half : Size::narrow;
  const Size size = fits(Size::square) >= count ? Size::square : small;
  const Crop crop{std::min(rows, std::max(figure.max_rows, 1)), std::min(columns, terminal.width / columns_of(size))};
  const int most = std::max(fits(size), 1), lines = std::max((count + most - 1) / most, 1);
  return {size, crop, (count + lines - 1) / lines};  // as even as possible: 2 + 2 rather than 3 + 1
}

void add_maps(std::vector<Line>& lines, const std::vector<Captioned>& maps, const Arrangement& how,
              const Terminal& terminal) {
  std::vector<Panel> panels;
  for (const Captioned& m : maps) {
    Panel panel = small_map(*m.map, how.size, how.crop, terminal);
    panel.lines.insert(panel.lines.begin(), m.above.begin(), m.above.end());
    panel.lines.insert(panel.lines.end(), m.below.begin(), m.below.end());
    for (const Line& line : panel.lines) panel.width = std::max(panel.width, line.width());
    panels.push_back(std::move(panel));
    if (static_cast<int>(panels.size()) < how.a_line && &m != &maps.back()) continue;
    add_side_by_side(lines, panels);
    lines.emplace_back();
    panels.clear();
  }
}

std::string names(const std::vector<std::string>& tokens, int count, const Terminal& terminal) {
  std::string out;
  for (int i = 0; i < count; ++i) out += " " + label(tokens, i, 12, terminal);
  return out;
}

// The axes, which small maps have no room for.
void add_axes(std::vector<Line>& lines, const AttentionMap& map, Crop crop, const Terminal& terminal) {
  crop = {std::min(crop.rows, map.rows), std::min(crop.columns, map.columns)};
  if (crop.rows == 0 || crop.columns == 0) return;
  const bool same = map.row_tokens == map.column_tokens;
  const std::string sources = names(map.column_tokens, crop.columns, terminal);
  const std::string queries = names(map.row_tokens, crop.rows, terminal);
  if (same && crop.columns == crop.rows) {
    add_text(lines, "queries (down) and sources (across):" + sources, terminal);
  } else {
    add_text(lines, "queries (down):" + queries, terminal);
    add_text(lines, "sources (across):" + sources, terminal);
  }
  if (crop.columns < map.columns)
    add_text(lines,
             fmt::format("Shown: sources 0 to {} of {}. A window {} columns wide shows all.", crop.columns - 1,
                         map.columns, map.columns),
             terminal, kStrong);
  if (crop.rows < map.rows)
    add_text(lines, fmt::format("Shown: queries 0 to {} of {}.", crop.rows - 1, map.rows), terminal, kStrong);
}

std::string finish(std::vector<Line>& lines, const std::vector<const AttentionMap*>& maps, Size size,
                   const Figure& figure) {
  Occurring marks;
  for (const AttentionMap* map : maps) marks.look_at(*map);
  add_legend(lines, marks, size == Size::half ? 0 : columns_of(size), figure.terminal.colour != Colour::none,
             figure.terminal);
  add_notes(lines, figure);
  return paint(lines, figure.terminal.colour);
}

/// Maps of one kind and shape, layer by layer.
struct Group {
  std::string kind;
  std::vector<const AttentionMap*> maps;
  double best = NAN;
  int most_heads = 0;  // of a layer
};

std::vector<Group> groups_of(const std::vector<AttentionMap>& maps) {
  std::vector<Group> groups;
  for (const AttentionMap& map : maps) {
    check(map);
    const auto same = [&](const Group& g) {
      return g.kind == map.kind && g.maps[0]->rows == map.rows && g.maps[0]->columns == map.columns;
    };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end()) group = groups.insert(groups.end(), {map.kind, {}, NAN, 0});
    group->maps.push_back(&map);
    group->best = std::fmax(group->best, pattern_match(map));
  }
  for (Group& g : groups) {
    std::stable_sort(g.maps.begin(), g.maps.end(), [](const AttentionMap* a, const AttentionMap* b) {
      return std::pair(a->layer, a->head) < std::pair(b->layer, b->head);
    });
    for (const AttentionMap* map : g.maps) {
      const auto in_layer = [&](const AttentionMap* other) { return other->layer == map->layer; };
      g.most_heads = std::max(g.most_heads, static_cast<int>(std::count_if(g.maps.begin(), g.maps.end(), in_layer)));
    }
  }
  return groups;
}

Line title_of(const AttentionMap& map, double best) {
  const std::string name = fmt::format("L{}H{}", map.layer, map.head);
  const double match = pattern_match(map);
  if (!std::isfinite(match)) return Line(name);
  const std::string shown = fmt::format("{} {:.2f}", name, std::floor(match * 100 + 1e-6) / 100);  // 0.998 is not 1.00
  return match == best ? Line(shown + " *", kStrong) : Line(shown);
}

// Returns the size of its maps.
Size add_group(std::vector<Line>& lines, const Group& group, const Figure& figure) {
  const Terminal& terminal = figure.terminal;
  add_text(lines, kind_name(group.kind), terminal, kStrong);
  std::vector<Captioned> maps;
  for (const AttentionMap* map : group.maps) maps.push_back({map, {title_of(*map, group.best)}, {}});
  const Arrangement how = arrange(maps, group.most_heads, figure);
  for (auto layer = maps.begin(); layer != maps.end();) {
    const auto next =
        std::find_if(layer, maps.end(), [&](const Captioned& other) { return other.map->layer != layer->map->layer; });
    add_maps(lines, {layer, next}, how, terminal);
    layer = next;
  }
  add_axes(lines, *group.maps[0], how.crop, terminal);
  lines.emplace_back();
  return how.size;
}

}  // namespace

std::string draw_overview(const std::vector<AttentionMap>& maps, const Figure& figure) {
  const Terminal& terminal = figure.terminal;
  const std::vector<Group> groups = groups_of(maps);
  std::vector<Line> lines;
  const bool matched = std::ranges::any_of(maps, [](const AttentionMap& m) { return std::isfinite(pattern_match(m)); });
  add_text(lines,
           matched ? "Every head: layer L, head H, and its pattern match (* the best)" : "Every head: layer L, head H",
           terminal, kStrong);
  add_text(lines, text::line(figure.caption, terminal.unicode), terminal, {});
  lines.emplace_back();
  std::vector<const AttentionMap*> drawn;
  Size size = Size::half;  // the largest: ideal cells are marked from Size::narrow on
  for (const Group& group : groups) {
    size = std::max(size, add_group(lines, group, figure));
    for (const AttentionMap* map : group.maps) {
      add_warnings(lines, *map, terminal);
      drawn.push_back(map);
    }
  }
  return finish(lines, drawn, size, figure);
}

std::string draw_filmstrip(const std::vector<Snapshot>& snapshots, const std::string& kind, int layer, int head,
                           const Figure& figure) {
  const Terminal& terminal = figure.terminal;
  std::vector<Captioned> frames;
  std::vector<const AttentionMap*> drawn;
  for (const Snapshot& snapshot : snapshots) {
    const auto map = std::find_if(snapshot.maps.begin(), snapshot.maps.end(), [&](const AttentionMap& m) {
      return m.kind == kind && m.layer == layer && m.head == head;
    });
    if (map == snapshot.maps.end()) continue;
    check(*map);
    const auto shown = [](double x) { return std::isfinite(x) ? number(x) : std::string("-"); };
    frames.push_back({&*map,
                      {Line(fmt::format("step {}", snapshot.step), kStrong)},
                      {Line("loss  " + shown(snapshot.loss)), Line("match " + shown(pattern_match(*map)))}});
    drawn.push_back(&*map);
  }
  const std::string name = fmt::format("L{}H{}", layer, head);
  if (frames.empty()) {
    const std::string fact = fmt::format("no snapshot holds {} of the {}", name, kind_name(kind));
    throw ConfigError(error_line("inspect", fact, {}, "choose a head that the overview shows"));
  }
  std::vector<Line> lines;
  add_text(lines, name + ": " + kind_name(kind) + " over training", terminal, kStrong);
  add_text(lines, text::line(figure.caption, terminal.unicode), terminal, {});
  lines.emplace_back();
  const Arrangement how = arrange(frames, static_cast<int>(frames.size()), figure);
  add_maps(lines, frames, how, terminal);
  add_axes(lines, *drawn[0], how.crop, terminal);
  for (const AttentionMap* map : drawn) add_warnings(lines, *map, terminal);
  lines.emplace_back();
  return finish(lines, drawn, how.size, figure);
}

}  // namespace tapehead
