#include "tools/inspect/terminal.h"

#include <gtest/gtest.h>

namespace tapehead {
namespace {

TerminalFacts facts_of(const std::string& term, const std::string& colorterm = "") {
  TerminalFacts facts;
  facts.is_terminal = true;
  facts.window_columns = 120;
  facts.term = term;
  facts.colorterm = colorterm;
  facts.lang = "en_US.UTF-8";
  return facts;
}

TEST(Terminal, TakesColoursFromTheNamesOfTheTerminal) {
  EXPECT_EQ(detect_terminal(facts_of("xterm-256color", "truecolor")).colour, Colour::truecolour);
  EXPECT_EQ(detect_terminal(facts_of("xterm", "24bit")).colour, Colour::truecolour);
  EXPECT_EQ(detect_terminal(facts_of("xterm-direct")).colour, Colour::truecolour);
  EXPECT_EQ(detect_terminal(facts_of("screen-256color")).colour, Colour::palette);
  EXPECT_EQ(detect_terminal(facts_of("xterm")).colour, Colour::palette);
  EXPECT_EQ(detect_terminal(facts_of("linux")).colour, Colour::none);
  EXPECT_EQ(detect_terminal(facts_of("vt100")).colour, Colour::none);
  EXPECT_EQ(detect_terminal(facts_of("")).colour, Colour::none);
}

TEST(Terminal, HasNoColourWhereItIsNotWanted) {
  EXPECT_EQ(detect_terminal(facts_of("dumb", "truecolor")).colour, Colour::none);
  TerminalFacts facts = facts_of("xterm-256color", "truecolor");
  facts.no_color = "1";
  EXPECT_EQ(detect_terminal(facts).colour, Colour::none);
  facts = facts_of("xterm-256color", "truecolor");
  facts.is_terminal = false;
  EXPECT_EQ(detect_terminal(facts).colour, Colour::none);
}

TEST(Terminal, TakesUnicodeFromTheFirstLocaleVariableThatIsSet) {
  TerminalFacts facts = facts_of("xterm");
  EXPECT_TRUE(detect_terminal(facts).unicode);
  facts.lc_ctype = "C";
  EXPECT_FALSE(detect_terminal(facts).unicode);
  facts.lc_all = "C.utf8";
  EXPECT_TRUE(detect_terminal(facts).unicode);
  EXPECT_FALSE(detect_terminal(TerminalFacts{}).unicode);
}

TEST(Terminal, TakesTheWidthFromColumnsThenTheWindow) {
  TerminalFacts facts = facts_of("xterm");
  EXPECT_EQ(detect_terminal(facts).width, 120);
  facts.columns = "100";
  EXPECT_EQ(detect_terminal(facts).width, 100);
  for (const char* nonsense : {"wide", "-5", "0", "100x", "99999999999"}) {
    facts.columns = nonsense;
    EXPECT_EQ(detect_terminal(facts).width, 120) << nonsense;
  }
  EXPECT_EQ(detect_terminal(TerminalFacts{}).width, 80);
  facts.columns = "3";
  EXPECT_EQ(detect_terminal(facts).width, 20);
}

TEST(Line, PaintsEachStyleFromZeroAndNeverBeyondTheLine) {
  Line line("a");
  line.add("b", {.bold = true}).add("c", {.ink = Rgb{1, 2, 3}, .paper = Rgb{4, 5, 6}, .dim = true, .reverse = true});
  EXPECT_EQ(line.width(), 3);
  EXPECT_EQ(line.paint(Colour::none), "abc\n");
  EXPECT_EQ(line.paint(Colour::truecolour), "a\x1b[0;1mb\x1b[0;2;7;38;2;1;2;3;48;2;4;5;6mc\x1b[0m\n");
  EXPECT_EQ(line.add("d").paint(Colour::none), "abcd\n");
}

TEST(Line, DropsSpacesThatShowNothing) {
  EXPECT_EQ(Line("a  ").paint(Colour::none), "a\n");
  EXPECT_EQ(Line("   ").paint(Colour::truecolour), "\n");
  const Style paper{.paper = Rgb{0, 0, 0}};
  EXPECT_EQ(Line("a").add("  ", paper).add("  ").paint(Colour::truecolour), "a\x1b[0;48;2;0;0;0m  \x1b[0m\n");
  EXPECT_EQ(Line("a").add("  ", paper).paint(Colour::none), "a\n");
}

}  // namespace
}  // namespace tapehead
