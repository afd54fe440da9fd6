#include "tools/inspect/text.h"

#include <gtest/gtest.h>

namespace tapehead::text {
namespace {

TEST(Text, MakesWhiteSpaceVisible) {
  EXPECT_EQ(token(" ", true), "␠");
  EXPECT_EQ(token("a\n\tb", true), "a⏎⇥b");
  EXPECT_EQ(token(" \n\t", false), "\\s\\n\\t");
}

TEST(Text, LetsNoControlCharacterThrough) {
  EXPECT_EQ(token("\x1b[31m", true), "\\x1b[31m");
  EXPECT_EQ(token(std::string_view("\0\r\x7f", 3), true), "\\x00\\x0d\\x7f");
  EXPECT_EQ(token("\xc2\x9b"
                  "31m",
                  true),
            "\\u{9b}31m");  // the one-byte form of ESC [
  for (int c = 0; c < 256; ++c)
    for (const bool unicode : {true, false})
      for (const char shown : token(std::string(1, static_cast<char>(c)), unicode))
        EXPECT_TRUE(static_cast<unsigned char>(shown) >= 0x20 && shown != 0x7f) << c;
}

TEST(Text, SpellsOutBytesThatAreNoUtf8F55) {
  EXPECT_EQ(token("\xff\xfe", true), "\\xff\\xfe");
  EXPECT_EQ(token("a\xc3", true), "a\\xc3");                           // half a character
  EXPECT_EQ(token("\xc0\xaf", true), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(token("\xe0\x80\xaf", true), "\\xe0\\x80\\xaf");           // overlong
  EXPECT_EQ(token("\xed\xa0\x80", true), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(token("\xf4\x90\x80\x80", true), "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
}

TEST(Text, SpellsOutWhatTerminalsDisagreeOn) {
  EXPECT_EQ(token("\u202e", true), "\\u{202e}");  // reorders the line
  EXPECT_EQ(token("a\u200b", true), "a\\u{200b}");
  EXPECT_EQ(token("\u2028", true), "\\u{2028}");
  EXPECT_EQ(token("א", true), "\\u{5d0}");
}

TEST(Text, SpellsOutEverythingBeyondAsciiWithoutUnicode) { EXPECT_EQ(token("é日", false), "\\u{e9}\\u{65e5}"); }

TEST(Text, CountsTerminalCells) {
  EXPECT_EQ(width("abc"), 3);
  EXPECT_EQ(width("é"), 1);
  EXPECT_EQ(width("e\u0301"), 1);  // a combining accent
  EXPECT_EQ(width("日本"), 4);
  EXPECT_EQ(width("😀"), 2);
}

TEST(Text, GivesALoneCombiningMarkABase) { EXPECT_EQ(token("\u0301", true), "◌\u0301"); }

TEST(Text, CutsByCells) {
  EXPECT_EQ(cut("abcdef", 6, true), "abcdef");
  EXPECT_EQ(cut("abcdef", 4, true), "abc…");
  EXPECT_EQ(cut("abcdef", 4, false), "abc~");
  EXPECT_EQ(cut("日本語", 4, true), "日…");  // the second would need the cell of the mark
  EXPECT_EQ(cut("abc", 0, true), "");
}

TEST(Text, WritesDownwards) {
  using Stack = std::vector<std::string>;
  EXPECT_EQ(downwards("c7", 1, 6, true), (Stack{"c", "7"}));
  EXPECT_EQ(downwards("e\u0301x", 1, 6, true), (Stack{"e\u0301", "x"}));
  EXPECT_EQ(downwards("\x1b", 1, 6, true), (Stack{"\\", "x", "1", "b"}));
  EXPECT_EQ(downwards("日", 2, 6, true), (Stack{"日"}));
  EXPECT_EQ(downwards("日", 1, 6, true), (Stack{"?"}));
  EXPECT_EQ(downwards("abcdef", 1, 3, true), (Stack{"a", "b", "…"}));
}

TEST(Text, WrapsBetweenWords) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrap("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap("one two three", 7, "  "), (Lines{"one two", "  three"}));
  EXPECT_EQ(wrap("a abcdefghij", 4), (Lines{"a", "abcd", "efgh", "ij"}));
  EXPECT_EQ(wrap("", 4), Lines{});
}

TEST(Text, KeepsACommandCopyable) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrap_command("tapehead inspect run --input 'a b c d e f g'", 24, "  "),
            (Lines{"tapehead inspect run \\", "  --input \\", "  'a b c d e f g'"}));
  EXPECT_EQ(wrap_command("cp a\\ b c", 8, ""), (Lines{"cp \\", "a\\ b c"}));
}

}  // namespace
}  // namespace tapehead::text
