#include "tools/inspect/colour_map.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tapehead {
namespace {

// matplotlib 3: viridis of 256 colours at index 0, 64, 128, 191 and 255.
TEST(Viridis, IsThePublishedOne) {
  const struct {
    int index;
    Rgb published;
  } rows[] = {
      {0, {68, 1, 84}}, {64, {59, 82, 139}}, {128, {33, 145, 140}}, {191, {94, 201, 98}}, {255, {253, 231, 37}}};
  for (const auto& row : rows) {
    const Rgb ours = viridis(row.index / 255.0);
    EXPECT_LE(std::abs(ours.red - row.published.red), 7) << row.index;
    EXPECT_LE(std::abs(ours.green - row.published.green), 7) << row.index;
    EXPECT_LE(std::abs(ours.blue - row.published.blue), 7) << row.index;
  }
  EXPECT_EQ(viridis(0), (Rgb{68, 1, 84}));
  EXPECT_EQ(viridis(1), (Rgb{253, 231, 37}));
  EXPECT_EQ(viridis(-1), viridis(0));
  EXPECT_EQ(viridis(2), viridis(1));
}

TEST(Ink, ContrastsWithEveryWeight) {
  EXPECT_EQ(ink_on({0, 0, 0}), (Rgb{255, 255, 255}));
  EXPECT_EQ(ink_on({255, 255, 255}), (Rgb{0, 0, 0}));
  EXPECT_EQ(ink_on(viridis(0)), (Rgb{255, 255, 255}));
  EXPECT_EQ(ink_on(viridis(1)), (Rgb{0, 0, 0}));
}

TEST(Palette, FindsTheNearestColour) {
  EXPECT_EQ(palette_index({0, 0, 0}), 16);
  EXPECT_EQ(palette_index({255, 255, 255}), 231);
  EXPECT_EQ(palette_index({255, 0, 0}), 196);
  EXPECT_EQ(palette_index({95, 95, 95}), 59);
  EXPECT_EQ(palette_index(viridis(0)), 53);   // (95, 0, 95)
  EXPECT_EQ(palette_index(viridis(1)), 220);  // (255, 215, 0)
}

TEST(Palette, NeverShowsAWeightInGrey) {
  for (int i = 0; i <= 1000; ++i) {
    const int index = palette_index(viridis(i / 1000.0));
    ASSERT_LT(index, 232);
    const int cube = index - 16, r = cube / 36, g = cube / 6 % 6, b = cube % 6;
    EXPECT_FALSE(r == g && g == b) << i;
  }
}

}  // namespace
}  // namespace tapehead
