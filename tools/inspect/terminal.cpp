#include "tools/inspect/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "tools/inspect/text.h"

namespace tapehead {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Colour colour_of(const TerminalFacts& facts) {
  const std::string_view term = facts.term;
  if (!facts.is_terminal || !facts.no_color.empty() || term.empty() || term == "dumb") return Colour::none;
  const auto names = [&](std::string_view part) { return term.find(part) != term.npos; };
  if (facts.colorterm == "truecolor" || facts.colorterm == "24bit" || names("-direct")) return Colour::truecolour;
  if (names("256color")) return Colour::palette;
  if (names("-mono") || names("16color") || names("88color")) return Colour::none;
  // Named without a number of colours, but in practice every one of them has 256; containers often say "xterm".
  for (const std::string_view family : {"xterm", "tmux", "screen", "rxvt", "alacritty", "foot", "wezterm"})
    if (term.starts_with(family)) return Colour::palette;
  return Colour::none;
}

// POSIX: the first of LC_ALL, LC_CTYPE, LANG that is set decides.
bool utf8_locale(const TerminalFacts& facts) {
  std::string name = !facts.lc_all.empty() ? facts.lc_all : !facts.lc_ctype.empty() ? facts.lc_ctype : facts.lang;
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name.find("utf-8") != name.npos || name.find("utf8") != name.npos;
}

}  // namespace

TerminalFacts terminal_facts(int file_descriptor) {
  TerminalFacts facts;
  facts.is_terminal = isatty(file_descriptor) == 1;
  winsize window{};
  if (facts.is_terminal && ioctl(file_descriptor, TIOCGWINSZ, &window) == 0) facts.window_columns = window.ws_col;
  facts.term = variable("TERM");
  facts.colorterm = variable("COLORTERM");
  facts.no_color = variable("NO_COLOR");
  facts.columns = variable("COLUMNS");
  facts.lc_all = variable("LC_ALL");
  facts.lc_ctype = variable("LC_CTYPE");
  facts.lang = variable("LANG");
  return facts;
}

Terminal detect_terminal(const TerminalFacts& facts) {
  int width = 0;
  const char* end = facts.columns.data() + facts.columns.size();
  const auto parsed = std::from_chars(facts.columns.data(), end, width);
  if (parsed.ec != std::errc() || parsed.ptr != end || width <= 0) width = facts.window_columns;
  if (width <= 0) width = 80;
  return {colour_of(facts), utf8_locale(facts) && facts.term != "dumb", std::clamp(width, 20, 2000), facts.is_terminal};
}

Terminal detect_terminal(int file_descriptor) { return detect_terminal(terminal_facts(file_descriptor)); }

// --- styles

namespace {

// Select Graphic Rendition (ECMA-48, 8.3.117). Each starts from 0, so it does not matter what came before.
std::string escape(const Style& style, Colour colour) {
  std::string codes = "0";
  if (style.bold) codes += ";1";
  if (style.dim) codes += ";2";
  if (style.reverse) codes += ";7";
  const auto put = [&](int layer, const std::optional<Rgb>& c) {
    if (!c) return;
    codes += colour == Colour::truecolour ? fmt::format(";{};2;{};{};{}", layer, c->red, c->green, c->blue)
                                          : fmt::format(";{};5;{}", layer, palette_index(*c));
  };
  put(38, style.ink);
  put(48, style.paper);
  return "\x1b[" + codes + "m";
}

}  // namespace

Line& Line::add(const std::string& text, const Style& style) {
  if (text.empty()) return *this;
  width_ += text::width(text);
  if (!spans_.empty() && spans_.back().style == style) {
    spans_.back().text += text;
  } else {
    spans_.push_back({text, style});
  }
  return *this;
}

Line& Line::add(const Line& other) {
  for (const Span& span : other.spans_) add(span.text, span.style);
  return *this;
}

Line& Line::pad(int cells) { return add(std::string(static_cast<std::size_t>(std::max(cells - width_, 0)), ' ')); }

std::string Line::paint(Colour colour) const {
  std::string out;
  std::size_t seen = 0;  // up to here something shows
  Style current;
  for (const Span& span : spans_) {
    if (colour != Colour::none && span.style != current) {
      out += span.style == Style{} ? "\x1b[0m" : escape(span.style, colour);
      current = span.style;
      if (current == Style{}) seen = out.size();
    }
    out += span.text;
    const bool styled = colour != Colour::none && current != Style{};
    const std::size_t last = out.find_last_not_of(' ');
    if (styled)
      seen = out.size();
    else if (last != out.npos)
      seen = std::max(seen, last + 1);
  }
  out.resize(seen);
  if (current != Style{}) out += "\x1b[0m";
  return out + "\n";
}

std::string paint(const std::vector<Line>& lines, Colour colour) {
  std::string out;
  for (const Line& line : lines) out += line.paint(colour);
  return out;
}

}  // namespace tapehead
