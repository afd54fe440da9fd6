// A picture of pixels with letters in it, as PNG. The letters are a bitmap font of 5 x 9 pixels, so that the same
// picture has the same bytes on every machine, whatever fonts it has.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/inspect/colour_map.h"

namespace tapehead {

class Raster {
 public:
  static constexpr int kLetterWidth = 6, kLetterHeight = 9, kDescent = 2;  // with the gap to the next letter

  /// White.
  Raster(int width, int height);
  int width() const { return width_; }
  int height() const { return height_; }

  /// What the font cannot draw is spelled out in ASCII: all but ASCII and `␠ ⏎ ⇥ … → ↓ ·`. `safe` as text::token makes
  /// it.
  static std::string drawable(std::string_view safe);
  /// Letters of a drawable text.
  static int letters(std::string_view drawable);

  /// Clipped at the edges, as letters are.
  void fill(int x, int y, int width, int height, Rgb colour);
  void frame(int x, int y, int width, int height, Rgb colour);
  /// Diagonal lines.
  void hatch(int x, int y, int width, int height, Rgb ground, Rgb line);
  /// From the top left, `size` pixels for a dot of the font.
  void write(int x, int y, std::string_view drawable, int size);
  /// Upwards: x, y is where its first letter's lower left corner comes to lie, turned a quarter to the left.
  void write_up(int x, int y, std::string_view drawable, int size);

  /// The fields are text that programs can read from the file. Throws Error.
  std::string png(std::vector<std::pair<std::string, std::string>> fields) const;

 private:
  std::uint8_t* at(int x, int y);
  int width_, height_;
  std::vector<std::uint8_t> pixels_;  // [height, width, 3]
};

}  // namespace tapehead
