#include "tools/inspect/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace tapehead::text {

namespace {

struct Decoded {
  char32_t code;
  std::size_t bytes;  // 0: not UTF-8
};

// The Unicode Standard, table 3-7: no overlong form, no surrogate, nothing beyond U+10FFFF.
Decoded decode(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(s[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t n = lead >= 0xC2 && lead <= 0xDF   ? 2
                        : lead >= 0xE0 && lead <= 0xEF ? 3
                        : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                       : 0;
  if (n == 0 || s.size() < n) return {0, 0};
  char32_t code = lead & (0xFFu >> (n + 1));
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const bool overlong = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
  if (overlong || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {0, 0};
  return {code, n};
}

// What passes. A character of another block is spelled out: right-to-left scripts, which a terminal may reorder,
// joiners, variation selectors, scripts whose letters combine, private use. A block that a task needs is a row here.
struct Range {
  char32_t first, last;
  int width;
};
constexpr Range kPrintable[] = {
    {0x20, 0x7E, 1},       {0xA1, 0xAC, 1},       {0xAE, 0x2FF, 1},                          // Latin, phonetic
    {0x300, 0x34E, 0},     {0x350, 0x36F, 0},                                                // combining marks
    {0x370, 0x377, 1},     {0x37A, 0x37F, 1},     {0x384, 0x38A, 1},     {0x38E, 0x3A1, 1},  // Greek
    {0x3A3, 0x482, 1},     {0x48A, 0x52F, 1},     {0x531, 0x556, 1},     {0x561, 0x587, 1},  // Cyrillic, Armenian
    {0x10D0, 0x10FF, 1},   {0x1D00, 0x1DBF, 1},   {0x1E00, 0x1EFF, 1},                       // Georgian, Latin
    {0x2010, 0x2027, 1},   {0x2030, 0x205E, 1},   {0x2070, 0x2071, 1},   {0x2074, 0x208E, 1},
    {0x20A0, 0x20BF, 1},   {0x2100, 0x218B, 1},   {0x2190, 0x22FF, 1},    // currency, arrows, signs
    {0x2400, 0x2426, 1},   {0x2500, 0x25FC, 1},                           // pictures, boxes, blocks
    {0x27C0, 0x27EF, 1},   {0x2800, 0x28FF, 1},   {0x23CE, 0x23CE, 1},    // brackets, Braille, return
    {0x3001, 0x3029, 2},   {0x3041, 0x3096, 2},   {0x309B, 0x30FF, 2},    // kana
    {0x3105, 0x312F, 2},   {0x3400, 0x4DBF, 2},   {0x4E00, 0x9FFF, 2},    // Bopomofo, Han
    {0xAC00, 0xD7A3, 2},   {0xF900, 0xFAD9, 2},   {0xFF01, 0xFF60, 2},    // Hangul, Han, full width
    {0xFF61, 0xFF9F, 1},   {0xFFFD, 0xFFFD, 1},                           // half width, replacement
    {0x1F400, 0x1F43E, 2}, {0x1F442, 0x1F4FC, 2}, {0x1F600, 0x1F64F, 2},  // emoji
    {0x1F680, 0x1F6C5, 2}, {0x1F90C, 0x1F93A, 2}, {0x1F947, 0x1F9FF, 2}, {0x20000, 0x2A6DF, 2},
};

// -1: must not be printed.
int width_of(char32_t code) {
  for (const Range& r : kPrintable)
    if (code >= r.first && code <= r.last) return r.width;
  return -1;
}

std::string spell(char32_t code) {
  return code < 0x80 ? fmt::format("\\x{:02x}", static_cast<unsigned>(code))
                     : fmt::format("\\u{{{:x}}}", static_cast<unsigned>(code));
}

Glyph glyph(char32_t code, std::string_view bytes, bool unicode) {
  switch (code) {
    case ' ':
      return unicode ? Glyph{"␠", 1} : Glyph{"\\s", 2};
    case '\n':
      return unicode ? Glyph{"⏎", 1} : Glyph{"\\n", 2};
    case '\t':
      return unicode ? Glyph{"⇥", 1} : Glyph{"\\t", 2};
    default:
      break;
  }
  const int cells = width_of(code);
  if (cells < 0 || (!unicode && code > 0x7E)) {
    std::string spelled = spell(code);
    const auto length = static_cast<int>(spelled.size());
    return {std::move(spelled), length};
  }
  return {std::string(bytes), cells};
}

std::string joined(const std::vector<Glyph>& glyphs) {
  std::string out;
  for (const Glyph& g : glyphs) out += g.bytes;
  return out;
}

}  // namespace

std::vector<Glyph> visible(std::string_view raw, bool unicode) {
  std::vector<Glyph> out;
  while (!raw.empty()) {
    const Decoded d = decode(raw);
    if (d.bytes == 0) {
      out.push_back({fmt::format("\\x{:02x}", static_cast<std::uint8_t>(raw[0])), 4});
      raw.remove_prefix(1);
      continue;
    }
    Glyph g = glyph(d.code, raw.substr(0, d.bytes), unicode);
    // A mark needs something to sit on, or it changes whatever stands before the token.
    if (g.width == 0 && out.empty()) out.push_back({"◌", 1});
    out.push_back(std::move(g));
    raw.remove_prefix(d.bytes);
  }
  return out;
}

std::string token(std::string_view raw, bool unicode) { return joined(visible(raw, unicode)); }

std::string line(std::string_view raw, bool unicode) {
  std::string out;
  while (!raw.empty()) {
    const std::size_t space = std::min(raw.find(' '), raw.size());
    out += token(raw.substr(0, space), unicode);
    if (space < raw.size()) out += ' ';
    raw.remove_prefix(std::min(space + 1, raw.size()));
  }
  return out;
}

std::vector<std::string> downwards(std::string_view raw, int cells, std::size_t most, bool unicode) {
  std::vector<std::string> stack;
  for (const Glyph& g : visible(raw, unicode)) {
    if (static_cast<std::uint8_t>(g.bytes[0]) < 0x80) {
      for (const char c : g.bytes) stack.emplace_back(1, c);  // one letter, or what spells out another
    } else if (g.width == 0) {
      stack.back() += g.bytes;
    } else {
      stack.push_back(g.width <= cells ? g.bytes : "?");  // a wide character does not fit in a narrow column
    }
  }
  if (stack.size() > most) {
    stack.resize(most);
    stack.back() = unicode ? "…" : "~";
  }
  return stack;
}

int width(std::string_view safe) {
  int cells = 0;
  while (!safe.empty()) {
    const Decoded d = decode(safe);
    cells += d.bytes ? std::max(width_of(d.code), 0) : 1;
    safe.remove_prefix(std::max<std::size_t>(d.bytes, 1));
  }
  return cells;
}

std::string cut(std::string_view safe, int cells, bool unicode) {
  if (width(safe) <= cells) return std::string(safe);
  if (cells <= 0) return {};
  std::string out;
  for (int used = 0; !safe.empty();) {
    const Decoded d = decode(safe);
    const std::size_t bytes = std::max<std::size_t>(d.bytes, 1);
    used += width(safe.substr(0, bytes));
    if (used > cells - 1) break;
    out += safe.substr(0, bytes);
    safe.remove_prefix(bytes);
  }
  return out + (unicode ? "…" : "~");
}

std::string pad_right(std::string text, int cells) {
  text.append(static_cast<std::size_t>(std::max(cells - width(text), 0)), ' ');
  return text;
}

std::string pad_left(std::string text, int cells) {
  text.insert(0, static_cast<std::size_t>(std::max(cells - width(text), 0)), ' ');
  return text;
}

std::string centre(std::string text, int cells) {
  const int spare = std::max(cells - width(text), 0);
  text.insert(0, static_cast<std::size_t>(spare / 2), ' ');
  return pad_right(std::move(text), cells);
}

namespace {

// The first bytes of `word` that fill at most `cells`, but at least one character.
std::size_t prefix(std::string_view word, int cells) {
  std::size_t taken = 0;
  while (taken < word.size()) {
    const std::size_t next = taken + std::max<std::size_t>(decode(word.substr(taken)).bytes, 1);
    if (taken > 0 && width(word.substr(0, next)) > cells) break;
    taken = next;
  }
  return taken;
}

// Words separated by spaces; with `quotes`, spaces within '' or "" or after a backslash belong to the word.
std::vector<std::string_view> words(std::string_view text, bool quotes) {
  std::vector<std::string_view> out;
  std::size_t begin = 0;
  char quote = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    if (quotes && c == '\\' && quote != '\'' && i + 1 < text.size()) {
      ++i;
    } else if (quotes && (c == '\'' || c == '"') && (quote == 0 || quote == c)) {
      quote = quote ? '\0' : c;
    } else if (i >= text.size() || (c == ' ' && quote == 0)) {
      if (i > begin) out.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> wrap(std::string_view safe, int cells, std::string_view indent) {
  std::vector<std::string> lines;
  std::string current;
  for (std::string_view word : words(safe, false)) {
    if (!current.empty() && width(current) + 1 + width(word) > cells) {
      lines.push_back(std::move(current));
      current.clear();
    }
    if (!current.empty())
      current += ' ';
    else if (!lines.empty() && width(indent) < cells)
      current = indent;
    while (width(current) + width(word) > cells) {
      const std::size_t taken = prefix(word, cells - width(current));
      if (taken == word.size()) break;
      lines.push_back(current + std::string(word.substr(0, taken)));
      current.clear();
      word.remove_prefix(taken);
    }
    current += word;
  }
  if (!current.empty()) lines.push_back(std::move(current));
  return lines;
}

std::vector<std::string> wrap_command(std::string_view safe, int cells, std::string_view indent) {
  std::vector<std::string> lines;
  std::string current;
  for (const std::string_view word : words(safe, true)) {
    if (!current.empty() && width(current) + 1 + width(word) > cells - 2) {
      lines.push_back(current + " \\");
      current = indent;
    } else if (!current.empty()) {
      current += ' ';
    }
    current += word;
  }
  if (!current.empty()) lines.push_back(std::move(current));
  return lines;
}

}  // namespace tapehead::text
