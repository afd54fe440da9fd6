// What a terminal can show, found out from its environment, and text with styles painted for it.
//
// Everything here makes strings; nothing prints. NO_COLOR is https://no-color.org; COLORTERM and TERM as terminals
// set them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/inspect/colour_map.h"

namespace tapehead {

enum class Colour { none, palette, truecolour };  // characters alone; 256 colours; 24 bits

struct Terminal {
  Colour colour = Colour::none;
  bool unicode = false;
  int width = 80;  // cells
  bool is_terminal = false;
};

/// All that detection looks at, so that it is a function. A variable that is not set is empty.
struct TerminalFacts {
  bool is_terminal = false;
  int window_columns = 0;  // as the kernel reports them; 0: unknown
  std::string term, colorterm, no_color, columns, lc_all, lc_ctype, lang;
};

TerminalFacts terminal_facts(int file_descriptor);
/// Colour only on a terminal without NO_COLOR whose TERM is known to have it; Unicode in a UTF-8 locale; the width
/// from COLUMNS, else the window's, else 80, and never under 20.
Terminal detect_terminal(const TerminalFacts& facts);
/// The same with the standard output's or the standard error's facts.
Terminal detect_terminal(int file_descriptor);

struct Style {
  std::optional<Rgb> ink = {}, paper = {};  // letters and background; the terminal's own unless given
  bool bold = false, dim = false, reverse = false;
  bool operator==(const Style&) const = default;
};

/// One line of a picture. Texts must be safe (tools/inspect/text.h) and hold no line feed.
class Line {
 public:
  Line() = default;
  explicit Line(const std::string& text, const Style& style = {}) { add(text, style); }
  Line& add(const std::string& text, const Style& style = {});
  Line& add(const Line& other);
  /// Spaces up to `cells`.
  Line& pad(int cells);
  int width() const { return width_; }
  /// With a line feed, without spaces at the end that show nothing; a style never lasts beyond the line.
  std::string paint(Colour colour) const;

 private:
  struct Span {
    std::string text;
    Style style;
  };
  std::vector<Span> spans_;
  int width_ = 0;
};

std::string paint(const std::vector<Line>& lines, Colour colour);

}  // namespace tapehead
