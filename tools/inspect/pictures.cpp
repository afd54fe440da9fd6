#include "tools/inspect/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autograd/error.h"
#include "tools/inspect/colour_map.h"
#include "tools/inspect/parts.h"
#include "tools/inspect/raster.h"
#include "tools/inspect/text.h"

namespace tapehead {

namespace {

const char* const kReading =
    "Rows are queries, columns are keys. Read along a row: its weights sum to 1. A masked key is hatched.";
const char* const kCaution =
    "A weight says how much of a value is mixed in here; it does not explain the decision: the values, the output "
    "projection, the residual path and later layers matter too.";
constexpr Rgb kBroken{255, 0, 170}, kMaskedGround{232, 232, 228}, kMaskedLine{185, 186, 181};

Rgb colour_of(const AttentionMap& map, int row, int column) {
  switch (parts::cell(map, row, column)) {
    case parts::Cell::masked:
      return kMaskedGround;
    case parts::Cell::broken:
      return kBroken;
    case parts::Cell::weight:
      break;
  }
  return viridis(parts::weight(map, row, column));
}

std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

// Text of an XML document: what XML cannot hold is spelled out by text::line before.
std::string xml(const std::string& raw) {
  std::string out;
  for (const char c : text::line(raw, true))
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

std::string hex(Rgb c) { return fmt::format("#{:02x}{:02x}{:02x}", c.red, c.green, c.blue); }

std::string label_of(const std::vector<std::string>& tokens, int i) {
  return fmt::format("{}:{}", i, text::cut(text::token(tokens[static_cast<std::size_t>(i)], true), 12, true));
}
std::string name_of(const std::vector<std::string>& tokens, int i) { return xml(label_of(tokens, i)); }

std::string title_of(const AttentionMap& map, const Caption& caption) {
  return fmt::format("L{}H{}, {}{}", map.layer, map.head, parts::kind_name(map.kind),
                     caption.title.empty() ? "" : ": " + caption.title);
}

// --- the parts of an SVG

constexpr int kSvgCell = 22;

// Where the cells begin: beside and below the names.
struct Origin {
  int x, y;
};

Origin origin_of(const AttentionMap& map) {
  constexpr int kLetter = 8;  // of 12 pixels, and a little
  const auto longest = [](const std::vector<std::string>& tokens) {
    int most = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      most = std::max(most, text::width(label_of(tokens, static_cast<int>(i))));
    return most;
  };
  return {std::max(longest(map.row_tokens) * kLetter + 20, 90), longest(map.column_tokens) * kLetter + 100};
}

std::string svg_cells(const AttentionMap& map, Origin o) {
  std::string out;
  for (int i = 0; i < map.rows; ++i)
    for (int j = 0; j < map.columns; ++j) {
      const bool masked = parts::cell(map, i, j) == parts::Cell::masked;
      out += fmt::format(
          R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}"><title>query {}, key {}: {}</title></rect>)",
          o.x + j * kSvgCell, o.y + i * kSvgCell, kSvgCell, kSvgCell,
          masked ? "url(#masked)" : hex(colour_of(map, i, j)), name_of(map.row_tokens, i),
          name_of(map.column_tokens, j), masked ? "masked" : parts::number(double{parts::weight(map, i, j)}));
      out += '\n';
    }
  for (int i = 0; i < map.rows; ++i)
    for (int j = 0; j < map.columns; ++j)
      if (parts::ideal(map, i, j))
        out +=
            fmt::format(R"(<rect x="{0}" y="{1}" width="{2}" height="{2}" fill="none" stroke="#000" stroke-width="3"/>)"
                        R"(<rect x="{0}" y="{1}" width="{2}" height="{2}" fill="none" stroke="#fff" stroke-width="1"/>)"
                        "\n",
                        o.x + j * kSvgCell + 3, o.y + i * kSvgCell + 3, kSvgCell - 6);
  return out;
}

std::string svg_names(const AttentionMap& map, Origin o) {
  std::string out;
  for (int i = 0; i < map.rows; ++i)
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\" class=\"name\">{}</text>\n", o.x - 6,
                       o.y + i * kSvgCell + 15, name_of(map.row_tokens, i));
  for (int j = 0; j < map.columns; ++j)
    out += fmt::format("<text transform=\"translate({} {}) rotate(-90)\" class=\"name\">{}</text>\n",
                       o.x + j * kSvgCell + 15, o.y - 6, name_of(map.column_tokens, j));
  return out;
}

std::string svg_legend(Origin o, int y, bool ideal) {
  std::string out = fmt::format("<text x=\"{}\" y=\"{}\">weight 0</text>\n", o.x, y + 12);
  constexpr int kSteps = 64, kWidth = 3;
  for (int i = 0; i < kSteps; ++i)
    out += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="14" fill="{}"/>)", o.x + 66 + i * kWidth, y, kWidth,
                       hex(viridis(i / (kSteps - 1.0))));
  out += fmt::format(
      "\n<text x=\"{}\" y=\"{}\">1</text><rect x=\"{}\" y=\"{}\" width=\"14\" height=\"14\" fill=\"url(#masked)\"/>"
      "<text x=\"{}\" y=\"{}\">masked{}</text>\n",
      o.x + 264, y + 12, o.x + 292, y, o.x + 312, y + 12, ideal ? "; framed: the rule looks here" : "");
  return out;
}

}  // namespace

std::string to_csv(const std::vector<AttentionMap>& maps) {
  std::string out = "kind,layer,head,query,query_token,key,key_token,visible,weight\n";
  for (const AttentionMap& map : maps)
    for (int i = 0; i < map.rows; ++i)
      for (int j = 0; j < map.columns; ++j) {
        const auto cell =
            static_cast<std::size_t>(i) * static_cast<std::size_t>(map.columns) + static_cast<std::size_t>(j);
        out += fmt::format("{},{},{},{},{},{},{},{},{:.9g}\n", map.kind, map.layer, map.head, i,
                           field(map.row_tokens[static_cast<std::size_t>(i)]), j,
                           field(map.column_tokens[static_cast<std::size_t>(j)]), map.visible[cell] ? 1 : 0,
                           map.weights[cell]);
      }
  return out;
}

std::string to_svg(const AttentionMap& map, const Caption& caption) {
  parts::check(map);
  if (static_cast<std::int64_t>(map.rows) * map.columns > 65536)
    throw ConfigError(error_line("svg", fmt::format("{} x {} cells are too many for a drawing", map.rows, map.columns),
                                 {}, "use --png"));
  const Origin o = origin_of(map);
  const int below = o.y + map.rows * kSvgCell + 18;
  const int width = std::max(o.x + map.columns * kSvgCell + 20, 760), height = below + 130;
  bool ideal = false;
  for (const std::int32_t column : map.ideal) ideal |= column >= 0;
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\">\n"
      "<title>{2}</title>\n<desc>{3} {4}</desc>\n"
      "<style>text{{font:13px system-ui,sans-serif;fill:#1d1f23}}.name{{font:12px monospace}}.title{{font-size:18px;"
      "font-weight:600}}</style>\n"
      "<defs><pattern id=\"masked\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><rect width=\"6\" "
      "height=\"6\" fill=\"#e8e8e4\"/><path d=\"M0 6L6 0\" stroke=\"#b9bab5\"/></pattern></defs>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n"
      "<text x=\"20\" y=\"34\" class=\"title\">{5}</text>\n<text x=\"20\" y=\"56\">{6}</text>\n",
      width, height, xml(title_of(map, caption)), kReading, kCaution, xml(title_of(map, {})), xml(caption.title));
  out += fmt::format("<text x=\"{}\" y=\"84\">key →</text><text x=\"20\" y=\"{}\">query ↓</text>\n", o.x, o.y - 8);
  out += svg_cells(map, o) + svg_names(map, o) + svg_legend(o, below, ideal);
  constexpr int kLine = 100;  // letters that the least width holds
  int y = below + 38;
  std::vector<std::string> notes = text::wrap(kCaution, kLine);
  notes.insert(notes.begin(), kReading);
  notes.push_back(caption.command);
  for (const std::string& line : notes) {
    if (!line.empty()) out += fmt::format("<text x=\"20\" y=\"{}\">{}</text>\n", y, xml(line));
    y += 20;
  }
  return out + "</svg>\n";
}

namespace {

constexpr Rgb kWhite{255, 255, 255}, kBlack{0, 0, 0};

// Names beside a PNG's cells: all of them, or every so many where cells are smaller than letters.
struct Names {
  std::vector<std::string> names;
  int step = 1, most = 0;  // letters
  Names(const std::vector<std::string>& tokens, int cell, int size) {
    step = (Raster::kLetterHeight * size + cell) / cell;  // a pixel apart
    for (int i = 0; i < static_cast<int>(tokens.size()); i += step) {
      const std::string token = Raster::drawable(text::token(tokens[static_cast<std::size_t>(i)], true));
      names.push_back(fmt::format("{}:{}", i, text::cut(token, 12, true)));
      most = std::max(most, Raster::letters(names.back()));
    }
  }
};

void paint_cells(Raster& raster, const AttentionMap& map, Origin o, int cell) {
  for (int i = 0; i < map.rows; ++i)
    for (int j = 0; j < map.columns; ++j) {
      const int x = o.x + j * cell, y = o.y + i * cell;
      if (parts::cell(map, i, j) == parts::Cell::masked)
        raster.hatch(x, y, cell, cell, kMaskedGround, kMaskedLine);
      else
        raster.fill(x, y, cell, cell, colour_of(map, i, j));
      if (cell < 8 || !parts::ideal(map, i, j)) continue;
      for (int rim = 2; rim < 5; ++rim)
        raster.frame(x + rim, y + rim, cell - 2 * rim, cell - 2 * rim, rim == 3 ? kWhite : kBlack);
    }
}

void paint_names(Raster& raster, const Names& rows, const Names& columns, Origin o, int cell, int size) {
  const int letter = Raster::kLetterWidth * size,
            middle = (cell - (Raster::kLetterHeight - Raster::kDescent) * size) / 2;
  for (std::size_t i = 0; i < rows.names.size(); ++i)
    raster.write(o.x - 4 - Raster::letters(rows.names[i]) * letter,
                 o.y + static_cast<int>(i) * rows.step * cell + middle, rows.names[i], size);
  for (std::size_t j = 0; j < columns.names.size(); ++j)
    raster.write_up(o.x + static_cast<int>(j) * columns.step * cell + middle, o.y - 6, columns.names[j], size);
}

// The scale with its numbers, and the marks.
void paint_legend(Raster& raster, int x, int y, bool ideal) {
  constexpr int kSize = 2, kLetter = kSize * Raster::kLetterWidth, kStrip = 128, kMark = 16;
  const auto say = [&](std::string_view words) {
    raster.write(x, y, words, kSize);
    x += kLetter * (Raster::letters(words) + 1);
  };
  say("weight 0");
  for (int i = 0; i < kStrip; ++i) raster.fill(x + i, y, 1, kMark, viridis(i / (kStrip - 1.0)));
  x += kStrip + kLetter;
  say("1 ");
  raster.hatch(x, y, kMark, kMark, kMaskedGround, kMaskedLine);
  x += kMark + kLetter;
  say("masked ");
  if (!ideal) return;
  raster.fill(x, y, kMark, kMark, viridis(0.3));
  for (int rim = 1; rim < 4; ++rim)
    raster.frame(x + rim, y + rim, kMark - 2 * rim, kMark - 2 * rim, rim == 2 ? kWhite : kBlack);
  x += kMark + kLetter;
  say("the rule looks here");
}

}  // namespace

std::string to_png(const AttentionMap& map, const Caption& caption) {
  parts::check(map);
  constexpr int kMargin = 20, kText = 2, kLine = 24, kLeast = 720;
  const int cell = std::clamp(1024 / std::max({map.columns, map.rows, 1}), 1, 24), size = cell >= 20 ? 2 : 1;
  const int letter = Raster::kLetterWidth * size;
  const Names rows(map.row_tokens, cell, size), columns(map.column_tokens, cell, size);
  Origin o{std::max(kMargin + rows.most * letter + 8, 110), 0};
  const int width = std::max(o.x + map.columns * cell + kMargin, kLeast);
  const int room = (width - 2 * kMargin) / (kText * Raster::kLetterWidth);  // letters a line
  std::vector<std::string> above = text::wrap(text::line(title_of(map, {}), false), room), below;
  const auto add = [&](std::vector<std::string>& to, const std::vector<std::string>& lines) {
    to.insert(to.end(), lines.begin(), lines.end());
  };
  add(above, text::wrap(text::line(caption.title, false), room));
  add(below, text::wrap(kReading, room));
  add(below, text::wrap(kCaution, room));
  add(below, text::wrap_command(text::line(caption.command, false), room, "  "));
  o.y = kMargin + static_cast<int>(above.size()) * kLine + kLine + 12 + columns.most * letter;
  const int legend = o.y + map.rows * cell + 20;
  Raster raster(width, legend + kLine + 8 + static_cast<int>(below.size()) * kLine + kMargin);
  int y = kMargin;
  const auto write = [&](const std::vector<std::string>& lines) {
    for (const std::string& line : lines) raster.write(kMargin, y, line, kText), y += kLine;
  };
  write(above);
  raster.write(o.x, y + 6, "key →", kText);
  raster.write(kMargin, o.y - 24, "query ↓", kText);
  paint_cells(raster, map, o, cell);
  paint_names(raster, rows, columns, o, cell, size);
  paint_legend(raster, kMargin, legend,
               std::ranges::any_of(map.ideal, [](std::int32_t column) { return column >= 0; }));
  y = legend + kLine + 8;
  write(below);
  return raster.png({{"Title", text::line(title_of(map, caption), false)},
                     {"Description", std::string(kReading) + " Scale: 0 to 1, viridis. " + kCaution},
                     {"Comment", text::line(caption.command, false)}});
}

}  // namespace tapehead
