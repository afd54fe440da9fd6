// Text in terminal cells: what a string occupies on the screen, and what of it may reach the screen at all.
//
// Tokens, paths and commands are hostile: a file may hold ESC sequences, half a character, or marks that reorder a
// line. Only characters whose width terminals agree on pass; everything else is spelled out. Widths follow Unicode
// Standard Annex 11 (East Asian Width).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tapehead::text {

/// One thing to print, safe and of known width: a character, or the spelling of one that must not be printed.
struct Glyph {
  std::string bytes;  // UTF-8; ASCII alone when made for a terminal without Unicode
  int width;          // terminal cells: 0 for a combining mark, 2 for a wide character
};

/// Space, line feed and tab become `␠ ⏎ ⇥`, other controls and bytes that are no UTF-8 `\x1b`, characters of
/// doubtful width `\u{202e}`. Without `unicode` everything beyond ASCII is spelled out, white space as `\s \n \t`.
std::vector<Glyph> visible(std::string_view raw, bool unicode);
/// The same as one string: what a token looks like in a label.
std::string token(std::string_view raw, bool unicode);
/// The same for running text, such as a command line: spaces stay spaces.
std::string line(std::string_view raw, bool unicode);

/// A character a line, for a column name that is written downwards in `cells` cells: at most `most` lines.
std::vector<std::string> downwards(std::string_view raw, int cells, std::size_t most, bool unicode);

/// Cells that text made by this file (or by hand from such characters) occupies.
int width(std::string_view safe);
/// Cut to at most `cells` cells; what was cut shows as `…` (`~` without `unicode`).
std::string cut(std::string_view safe, int cells, bool unicode);
std::string pad_right(std::string text, int cells);
std::string pad_left(std::string text, int cells);
std::string centre(std::string text, int cells);

/// Paragraphs broken between words into lines of at most `cells`; a word that is longer is broken too.
std::vector<std::string> wrap(std::string_view safe, int cells, std::string_view indent = "");
/// A shell command over several lines, each but the last ending in ` \`, so that it still can be copied: words, and
/// what stands in quotes, are never broken, even when they are longer than `cells`.
std::vector<std::string> wrap_command(std::string_view safe, int cells, std::string_view indent);

}  // namespace tapehead::text
