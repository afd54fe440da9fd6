#include "tools/inspect/pictures.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cmath>

#include "autograd/error.h"
#include "tools/inspect/colour_map.h"
#include "tools/inspect/parts.h"
#include "tools/inspect/text.h"

namespace tapehead {

namespace {

const char* const kReading =
    "Rows are queries, columns are keys. Read along a row: its weights sum to 1. A masked key is grey.";
const char* const kCaution =
    "A weight says how much of a value is mixed in here; it does not explain the decision: the values, the output "
    "projection, the residual path and later layers matter too.";
constexpr Rgb kBroken{255, 0, 170};

Rgb colour_of(const AttentionMap& map, int row, int column) {
  switch (parts::cell(map, row, column)) {
    case parts::Cell::masked:
      return {224, 224, 220};
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

void append_bytes(png_structp png, png_bytep data, png_size_t size) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), size);
}

// The last bytes of the picture: cells, a gap, and the scale from 1 at the top to 0.
std::vector<std::string> pixel_rows(const AttentionMap& map, int cell) {
  constexpr int kGap = 8, kScale = 16;
  std::vector<std::string> rows;
  const int height = map.rows * cell;
  for (int y = 0; y < height; ++y) {
    std::string row;
    const auto add = [&](Rgb c, int times) {
      for (int i = 0; i < times; ++i)
        row += {static_cast<char>(c.red), static_cast<char>(c.green), static_cast<char>(c.blue)};
    };
    for (int j = 0; j < map.columns; ++j) add(colour_of(map, y / cell, j), cell);
    add({255, 255, 255}, kGap);
    add(viridis(1 - y / std::max(height - 1.0, 1.0)), kScale);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::string to_png(const AttentionMap& map, const Caption& caption) {
  parts::check(map);
  const int cell = std::clamp(1024 / std::max(map.columns, map.rows), 1, 24);
  std::vector<std::string> rows = pixel_rows(map, cell);
  std::string bytes;
  // libpng reports an error through this function, which must not return.
  const auto fail = [](png_structp, png_const_charp why) { throw Error(error_line("png", why)); };
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, fail, nullptr);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  if (!info) throw Error(error_line("png", "libpng cannot start"));
  struct Guard {
    png_structp png;
    png_infop info;
    ~Guard() { png_destroy_write_struct(&png, &info); }
  } guard{png, info};
  png_set_write_fn(png, &bytes, append_bytes, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(rows[0].size() / 3), static_cast<png_uint_32>(rows.size()), 8,
               PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<std::pair<std::string, std::string>> texts = {
      {"Title", text::line(title_of(map, caption), false)},
      {"Description", std::string(kReading) + " Scale, at the right: 0 to 1, viridis. " + kCaution},
      {"Comment", text::line(caption.command, false)}};
  std::vector<png_text> fields;
  for (auto& [key, value] : texts) {
    png_text field{};
    field.compression = PNG_TEXT_COMPRESSION_NONE;
    field.key = key.data();
    field.text = value.data();
    field.text_length = value.size();
    fields.push_back(field);
  }
  png_set_text(png, info, fields.data(), static_cast<int>(fields.size()));
  png_write_info(png, info);
  for (std::string& row : rows) png_write_row(png, reinterpret_cast<png_bytep>(row.data()));
  png_write_end(png, nullptr);
  return bytes;
}

}  // namespace tapehead
