// Pictures are compared with ones drawn by hand from the conventions.
#include "tools/inspect/heatmap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograd/error.h"
#include "tests/errors.h"
#include "tools/inspect/text.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;

// The weights of `rows`; -1: masked.
AttentionMap map_of(const std::vector<std::vector<float>>& rows, const std::vector<std::string>& row_tokens,
                    const std::vector<std::string>& column_tokens, const std::vector<std::int32_t>& ideal = {}) {
  AttentionMap map;
  map.kind = row_tokens == column_tokens ? "decoder" : "cross";
  map.rows = static_cast<std::int32_t>(row_tokens.size());
  map.columns = static_cast<std::int32_t>(column_tokens.size());
  for (const auto& row : rows)
    for (const float w : row) {
      map.weights.push_back(w == -1 ? 0 : w);
      map.visible.push_back(w != -1);
    }
  map.row_tokens = row_tokens;
  map.column_tokens = column_tokens;
  map.ideal = ideal;
  return map;
}

AttentionMap small_causal() {
  AttentionMap map =
      map_of({{1, -1, -1}, {.25f, .75f, -1}, {.05f, .95f, 0}}, {"a", "b", "a"}, {"a", "b", "a"}, {-1, 0, 1});
  map.head = 1;
  return map;
}

// One query looks far back, the rest at themselves: any size.
AttentionMap long_causal(int length) {
  AttentionMap map;
  map.kind = "decoder";
  map.rows = map.columns = length;
  for (int i = 0; i < length; ++i) {
    map.row_tokens.push_back(i % 3 == 0 ? "word" : i % 3 == 1 ? "日本" : "x");
    map.column_tokens.push_back(map.row_tokens.back());
    map.ideal.push_back(i / 2);
    for (int j = 0; j < length; ++j) {
      map.weights.push_back(j == i ? 1 : 0);
      map.visible.push_back(j <= i);
    }
  }
  return map;
}

Figure figure_for(Colour colour, bool unicode, int width = 80) {
  Figure figure;
  figure.terminal = {colour, unicode, width, true};
  return figure;
}

// Everything before the legend.
std::string picture(const std::string& figure) { return figure.substr(0, figure.find("\n\n", figure.find("source"))); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  return lines;
}

std::string without_escapes(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b')
      i = text.find('m', i);
    else
      out += text[i];
  }
  return out;
}

TEST(DrawHead, ReadsWithoutColour) {
  Figure figure = figure_for(Colour::none, true);
  figure.caption = "step 7";
  figure.command = "tapehead inspect runs/copy-001";
  EXPECT_EQ(draw_head(small_causal(), figure),
            "L0H1: decoder self-attention, layer 0, head 1\n"
            "pattern match 0.6000\n"
            "step 7\n"
            "\n"
            "       source →\n"
            "        0  1  2\n"
            "query ↓ a  b  a      largest\n"
            "   0:a  9  ·  ·   0:a 1.0000\n"
            "   1:b [2] 7  ·   1:b 0.7500\n"
            "   2:a  0 [9] 0   1:b 0.9500\n"
            "\n"
            "0-9: weight x 10   · masked   [ ] rule looks here\n"
            "Rows are queries, columns are sources. Read along a row: its weights say how\n"
            "that query mixes the values, and sum to 1. A masked source has weight 0.\n"
            "A weight tells how much of a value entered this mixture. It does not tell why\n"
            "the model decides: that also takes the values, the output projection, the\n"
            "residual path and the layers above.\n"
            "$ tapehead inspect runs/copy-001\n");
}

TEST(DrawHead, ReadsInAscii) {
  const std::string drawn = draw_head(small_causal(), figure_for(Colour::none, false));
  EXPECT_EQ(picture(drawn),
            "L0H1: decoder self-attention, layer 0, head 1\n"
            "pattern match 0.6000\n"
            "\n"
            "       source >\n"
            "        0  1  2\n"
            "query v a  b  a      largest\n"
            "   0:a  9  .  .   0:a 1.0000\n"
            "   1:b [2] 7  .   1:b 0.7500\n"
            "   2:a  0 [9] 0   1:b 0.9500");
  for (const char c : drawn) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << drawn;
}

// Rows are queries and columns sources: a map that is not symmetric tells a transpose.
TEST(DrawHead, PutsQueriesDownAndSourcesAcross) {
  const AttentionMap map = map_of({{0, .5f, .5f}, {1, 0, 0}}, {"x", "y"}, {"p", "q", "r"});
  EXPECT_EQ(picture(draw_head(map, figure_for(Colour::none, false))),
            "L0H0: cross-attention, layer 0, head 0\n"
            "\n"
            "       source >\n"
            "        0  1  2\n"
            "query v p  q  r      largest\n"
            "   0:x  0  5  5   1:q 0.5000\n"
            "   1:y  9  0  0   0:p 1.0000");
}

TEST(DrawHead, PaintsTruecolour) {
  const AttentionMap map = map_of({{1, -1}, {0, 1}}, {"a", "b"}, {"a", "b"}, {-1, 1});
  const auto lines = lines_of(draw_head(map, figure_for(Colour::truecolour, true)));
  EXPECT_EQ(lines[3], "       source →");
  EXPECT_EQ(lines[6], "\x1b[0;2m   0:a \x1b[0;38;2;0;0;0;48;2;253;231;37m   \x1b[0;2m · \x1b[0m  0:a 1.0000");
  EXPECT_EQ(lines[7],
            "\x1b[0;2m   1:b \x1b[0;38;2;255;255;255;48;2;68;1;84m   "
            "\x1b[0;38;2;0;0;0;48;2;253;231;37m[ ]\x1b[0m  1:b 1.0000");
}

TEST(DrawHead, Paints256Colours) {
  const AttentionMap map = map_of({{1, -1}, {0, 1}}, {"a", "b"}, {"a", "b"});
  const auto lines = lines_of(draw_head(map, figure_for(Colour::palette, true)));
  EXPECT_EQ(lines[5], "\x1b[0;2m   0:a \x1b[0;38;5;16;48;5;220m   \x1b[0;2m · \x1b[0m  0:a 1.0000");
  EXPECT_EQ(lines[6], "\x1b[0;2m   1:b \x1b[0;38;5;231;48;5;53m   \x1b[0;38;5;16;48;5;220m   \x1b[0m  1:b 1.0000");
}

TEST(DrawHead, ShowsTheScaleWithNumbers) {
  const std::string drawn = draw_head(small_causal(), figure_for(Colour::truecolour, true));
  EXPECT_TRUE(
      contains(without_escapes(drawn), "weight  0.0  0.2  0.4  0.6  0.8  1.0    · masked   [ ] rule looks here"));
  EXPECT_TRUE(contains(drawn, "48;2;68;1;84m 0.0 "));
  EXPECT_TRUE(contains(drawn, "48;2;253;231;37m 1.0 "));
}

// The scale is [0, 1] whatever the map holds: a flat map of 0.25 has the same colour as 0.25 anywhere.
TEST(DrawHead, KeepsOneScale) {
  const AttentionMap map = map_of({{.25f, .25f, .25f, .25f}}, {"a"}, {"b", "c", "d", "e"});
  EXPECT_TRUE(contains(draw_head(map, figure_for(Colour::truecolour, true)), "48;2;59;82;139m"));
}

TEST(DrawHead, MarksWhatCannotBeAWeight) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  AttentionMap map = map_of({{kNan, .5f}, {.5f, kInf}, {1.5f, -.5f}, {1, -1}}, {"a", "b", "c", "d"}, {"p", "q"});
  map.weights[7] = .5f;  // of the masked cell
  EXPECT_EQ(picture(draw_head(map, figure_for(Colour::none, false))),
            "L0H0: cross-attention, layer 0, head 0\n"
            "\n"
            "       source >\n"
            "        0  1\n"
            "query v p  q      largest\n"
            "   0:a  !  5   1:q 0.5000 !\n"
            "   1:b  5  !   0:p 0.5000 !\n"
            "   2:c  !  !\n"
            "   3:d  9  !   0:p 1.0000 !\n"
            "! query 0:a, source 0:p: nan is not a weight\n"
            "! query 1:b, source 1:q: inf is not a weight\n"
            "! query 2:c, source 0:p: 1.5 is not a weight\n"
            "! query 2:c, source 1:q: -0.5 is not a weight\n"
            "! query 3:d, source 1:q: 0.5 is not a weight of a masked source");
  EXPECT_TRUE(contains(draw_head(map, figure_for(Colour::truecolour, true)), "\x1b[0;1;7m ! \x1b[0"));
}

TEST(DrawHead, FlagsARowThatDoesNotSumToOne) {
  AttentionMap map = map_of({{.5f, .4f}, {.5f, .50001f}}, {"a", "b"}, {"p", "q"});  // 1.00001 is within 2 x 1e-5
  const std::string drawn = draw_head(map, figure_for(Colour::none, false));
  EXPECT_TRUE(contains(drawn, "   0:a  5  4   0:p 0.5000 !\n"));
  EXPECT_TRUE(contains(drawn, "   1:b  5  5   1:q 0.5000\n"));
  EXPECT_TRUE(contains(drawn, "! query 0:a: the weights sum to 0.9, not to 1\n"));
  map.weights[3] = .50003f;
  EXPECT_TRUE(contains(draw_head(map, figure_for(Colour::none, false)), "! query 1:b: the weights sum to 1.00003"));
}

TEST(DrawHead, CountsWarningsBeyondAFew) {
  AttentionMap map = long_causal(9);
  for (float& w : map.weights) w *= 2;
  EXPECT_TRUE(contains(draw_head(map, figure_for(Colour::none, false)), "! and 4 more\n"));
}

TEST(DrawHead, KeepsHostileTokensHarmless) {
  const AttentionMap map = map_of({{1, 0}}, {"\x1b]0;x\a"}, {"\x1b[2J", "\n"});
  const std::string drawn = draw_head(map, figure_for(Colour::none, true));
  EXPECT_FALSE(contains(drawn, "\x1b"));
  EXPECT_FALSE(contains(drawn, "\a"));
  EXPECT_TRUE(contains(drawn, "0:\\x1b]0;x\\x07"));
  Figure figure = figure_for(Colour::none, true);
  figure.command = "tapehead inspect '\x1b[2J'";
  figure.caption = "\x1b[31m\n";
  AttentionMap named = map;
  named.kind = "\x1b[5m";
  EXPECT_FALSE(contains(draw_head(named, figure), "\x1b"));
}

TEST(DrawHead, WritesNamesDownwardsInNarrowColumns) {
  AttentionMap map = map_of({std::vector<float>(13, 0)}, {"q"}, std::vector<std::string>(13, "ab"));
  map.weights[12] = 1;
  map.column_tokens[3] = "日";
  EXPECT_EQ(picture(draw_head(map, figure_for(Colour::none, true, 20))),
            "L0H0:\ncross-attention,\nlayer 0, head 0\n"
            "\n"
            "    source →\n"
            "              111\n"
            "    0123456789012\n"
            "    aaa?aaaaaaaaa\n"
            "    bbb bbbbbbbbb\n"
            "0:q 0000000000009");
}

// Too many sources for one column each: the first ones, and a note.
TEST(DrawHead, CropsAndSaysSo) {
  Figure figure = figure_for(Colour::none, false, 40);
  figure.max_rows = 10;
  std::string drawn = draw_head(long_causal(100), figure);
  EXPECT_TRUE(contains(drawn, "Shown: sources 0 to 2")) << drawn;
  EXPECT_TRUE(contains(drawn, "of 100.")) << drawn;
  EXPECT_TRUE(contains(drawn, "Shown: queries 0 to 9 of 100.")) << drawn;
  figure.first_row = 95;
  figure.first_column = 98;
  drawn = draw_head(long_causal(100), figure);
  EXPECT_TRUE(contains(drawn, "Shown: sources 98 to 99 of 100.")) << drawn;
  EXPECT_TRUE(contains(drawn, "Shown: queries 95 to 99 of 100.")) << drawn;
}

TEST(DrawHead, RefusesAMapThatContradictsItself) {
  AttentionMap map = small_causal();
  map.weights.pop_back();
  EXPECT_TRUE(contains(error_of<ShapeError>([&] { draw_head(map, Figure{}); }), "3 x 3 cells"));
  map = small_causal();
  map.ideal[0] = 3;
  EXPECT_TRUE(contains(error_of<ShapeError>([&] { draw_head(map, Figure{}); }), "[attention map]"));
}

TEST(DrawHead, SaysThatThereIsNothingToDraw) {
  EXPECT_TRUE(contains(draw_head(map_of({}, {}, {"p"}), Figure{}), "nothing to draw: 0 queries, 1 sources"));
}

// --- many maps

std::vector<AttentionMap> two_heads() {
  std::vector<AttentionMap> maps(2, small_causal());
  maps[0].head = 0;
  maps[0].weights = {1, 0, 0, .5f, .5f, 0, .5f, .4f, .1f};
  return maps;
}

TEST(DrawOverview, ShowsEveryHeadWithItsMatch) {
  EXPECT_EQ(picture(draw_overview(two_heads(), figure_for(Colour::none, false))),
            "Every head: layer L, head H, and its pattern match (* the best)\n"
            "\n"
            "decoder self-attention\n"
            "L0H0 0.45   L0H1 0.60 *\n"
            "9 . .       9 . .\n"
            "5*5 .       2*7 .\n"
            "5 4*1       0 9*0\n"
            "\n"
            "queries (down) and sources (across): 0:a 1:b 2:a");
}

TEST(DrawOverview, PutsTwoQueriesOnALineOfHalfBlocks) {
  std::vector<std::vector<float>> rows(3, std::vector<float>(12, -1));  // one column: two maps are too wide for two
  rows[0][0] = 1;
  rows[1][0] = 0, rows[1][1] = 1;
  rows[2][0] = 1, rows[2][1] = 0;
  std::vector<AttentionMap> maps(2, map_of(rows, {"a", "b", "c"}, std::vector<std::string>(12, "p")));
  maps[1].head = 1;
  const auto lines = lines_of(draw_overview(maps, figure_for(Colour::truecolour, true, 40)));
  const std::string yellow = "2;253;231;37", purple = "2;68;1;84", grey = "2;95;95;95", ten = "▀▀▀▀▀▀▀▀▀▀";
  EXPECT_EQ(lines[3], "L0H0           L0H1");
  const std::string first = "\x1b[0;38;" + yellow + ";48;" + purple + "m▀\x1b[0;38;" + grey + ";48;" + yellow +
                            "m▀\x1b[0;38;" + grey + ";48;" + grey + "m" + ten + "\x1b[0m";
  EXPECT_EQ(lines[4], first + "   " + first);
  const std::string last = "\x1b[0;38;" + yellow + "m▀\x1b[0;38;" + purple + "m▀\x1b[0;38;" + grey + "m" + ten +
                           "\x1b[0m";  // there is no fourth query
  EXPECT_EQ(lines[5], last + "   " + last);
}

TEST(DrawOverview, KeepsKindsAndLayersApart) {
  std::vector<AttentionMap> maps = two_heads();
  maps.push_back(map_of({{1, 0}}, {"x"}, {"p", "q"}));
  maps.push_back(small_causal());
  maps.back().layer = 1;
  const std::string drawn = draw_overview(maps, figure_for(Colour::none, false));
  EXPECT_TRUE(contains(drawn, "\n\nL1H1 0.60 *\n")) << drawn;
  EXPECT_TRUE(contains(drawn, "\ncross-attention\nL0H0\n9 0\n")) << drawn;
  EXPECT_TRUE(contains(drawn, "queries (down): 0:x\nsources (across): 0:p 1:q\n")) << drawn;
}

std::vector<Snapshot> three_snapshots() {
  std::vector<Snapshot> snapshots(3);
  for (std::size_t i = 0; i < 3; ++i) {
    snapshots[i].step = 50 * i;
    snapshots[i].loss = i == 0 ? NAN : 1.0 / static_cast<double>(i);
    snapshots[i].maps = {small_causal()};
  }
  snapshots[0].maps[0].weights = {1, 0, 0, .5f, .5f, 0, .5f, .4f, .1f};
  return snapshots;
}

TEST(DrawFilmstrip, ShowsOneHeadOverTraining) {
  EXPECT_EQ(picture(draw_filmstrip(three_snapshots(), "decoder", 0, 1, figure_for(Colour::none, false))),
            "L0H1: decoder self-attention over training\n"
            "\n"
            "step 0         step 50        step 100\n"
            "9 . .          9 . .          9 . .\n"
            "5*5 .          2*7 .          2*7 .\n"
            "5 4*1          0 9*0          0 9*0\n"
            "loss  -        loss  1.0000   loss  0.5000\n"
            "match 0.4500   match 0.6000   match 0.6000\n"
            "\n"
            "queries (down) and sources (across): 0:a 1:b 2:a");
}

TEST(DrawFilmstrip, RefusesAHeadThatNoSnapshotHas) {
  const auto draw = [] { draw_filmstrip(three_snapshots(), "cross", 0, 1, Figure{}); };
  EXPECT_TRUE(contains(error_of<ConfigError>(draw), "no snapshot holds L0H1 of the cross-attention"));
}

TEST(DrawFilmstrip, BearsMapsOfDifferentSizes) {
  std::vector<Snapshot> snapshots = three_snapshots();
  snapshots[1].maps[0] = long_causal(7);
  snapshots[1].maps[0].head = 1;
  EXPECT_TRUE(contains(draw_filmstrip(snapshots, "decoder", 0, 1, figure_for(Colour::none, false)), "step 50"));
}

TEST(Pictures, CarryHowToReadThemAndTheCaution) {
  const Figure figure = figure_for(Colour::none, true);
  for (const std::string& drawn : {draw_head(small_causal(), figure), draw_overview(two_heads(), figure),
                                   draw_filmstrip(three_snapshots(), "decoder", 0, 1, figure)}) {
    EXPECT_TRUE(contains(drawn, "Read along a row"));
    EXPECT_TRUE(contains(drawn, "It does not tell why\nthe model decides"));
    EXPECT_TRUE(contains(drawn, "· masked"));
  }
}

TEST(Pictures, AreNeverWiderThanTheTerminal) {
  for (const int width : {20, 27, 40, 80, 83, 500})
    for (const Colour colour : {Colour::none, Colour::palette, Colour::truecolour})
      for (const bool unicode : {false, true})
        for (const int length : {1, 3, 20, 130}) {
          Figure figure = figure_for(colour, unicode, width);
          figure.caption = "copy, decoder of 2 layers x 4 heads, width 64, 101,376 parameters, step 75";
          std::vector<AttentionMap> maps(5, long_causal(length));
          for (int h = 0; h < 5; ++h) maps[static_cast<std::size_t>(h)].head = h;
          maps[2].weights[0] = NAN;
          std::vector<Snapshot> snapshots(4);
          for (Snapshot& s : snapshots) s.maps = maps, s.step = 123'456;
          for (const std::string& drawn :
               {draw_head(maps[0], figure), draw_head(maps[2], figure), draw_overview(maps, figure),
                draw_filmstrip(snapshots, "decoder", 0, 2, figure)})
            for (const std::string& line : lines_of(without_escapes(drawn)))
              ASSERT_LE(text::width(line), width) << "length " << length << ", unicode " << unicode << "\n" << drawn;
        }
}

}  // namespace
}  // namespace tapehead
