#include "tools/inspect/raster.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "autograd/error.h"
#include "tools/inspect/text.h"

namespace tapehead {

namespace {

// Sixteen letters a band, from the space on; after ASCII the signs.
constexpr std::string_view kFont[] = {
    "        #    # #   # #    #   ##  #  ##     #      #   #                                      #",
    "        #    # #   # #   #### ##  # #  #    #     #     #     #     #                         #",
    "        #         ##### # #      #  # #          #       #  # # #   #                        #",
    "        #          # #   ###    #    #           #       #   ###  #####       #####         #",
    "        #         #####   # #  #    # # #        #       #  # # #   #                      #",
    "                   # #  ####  #  ## #  #          #     #     #     #     #               #",
    "        #          # #    #   #  ##  ## #          #   #                  #           #   #",
    "                                                                         #",
    "",
    " ###    #    ###   ###     #  #####   ##  #####  ###   ###                 #         #     ###",
    "#   #  ##   #   # #   #   ##  #      #        # #   # #   #               #           #   #   #",
    "#  ##   #       #     #  # #  ####  #        #  #   # #   #   #     #    #    #####    #      #",
    "# # #   #      #    ##  #  #      # ####    #    ###   ####             #               #    #",
    "##  #   #     #       # #####     # #   #   #   #   #     #              #    #####    #    #",
    "#   #   #    #    #   #    #  #   # #   #  #    #   #    #    #     #     #           #",
    " ###   ###  #####  ###     #   ###   ###   #     ###   ##           #      #         #      #",
    "                                                                   #",
    "",
    " ###   ###  ####   ###  ###   ##### #####  ###  #   #  ###    ### #   # #     #   # #   #  ###",
    "#   # #   # #   # #   # #  #  #     #     #   # #   #   #      #  #  #  #     ## ## ##  # #   #",
    "# ### #   # #   # #     #   # #     #     #     #   #   #      #  # #   #     # # # ##  # #   #",
    "# # # ##### ####  #     #   # ####  ####  # ### #####   #      #  ##    #     # # # # # # #   #",
    "# ### #   # #   # #     #   # #     #     #   # #   #   #      #  # #   #     #   # #  ## #   #",
    "#     #   # #   # #   # #  #  #     #     #   # #   #   #   #  #  #  #  #     #   # #  ## #   #",
    " #### #   # ####   ###  ###   ##### #      #### #   #  ###   ##   #   # ##### #   # #   #  ###",
    "",
    "",
    "####   ###  ####   #### ##### #   # #   # #   # #   # #   # #####  ###  #      ###    #",
    "#   # #   # #   # #       #   #   # #   # #   # #   # #   #     #  #    #        #   # #",
    "#   # #   # #   # #       #   #   # #   # #   #  # #   # #     #   #     #       #  #   #",
    "####  #   # ####   ###    #   #   # #   # # # #   #     #     #    #      #      #",
    "#     # # # # #       #   #   #   #  # #  # # #  # #    #    #     #       #     #",
    "#     #  #  #  #      #   #   #   #  # #  ## ## #   #   #   #      #        #    #",
    "#      ## # #   # ####    #    ###    #   #   # #   #   #   #####  ###      #  ###",
    "                                                                                          #####",
    "",
    " #          #               #         ##        #       #      #  #      ##",
    "  #         #               #        #          #                 #       #",
    "       ###  ####   ####  ####  ###  ####   #### ####   ##     ##  #  #    #   ## #  ####   ###",
    "          # #   # #     #   # #   #  #    #   # #   #   #      #  # #     #   # # # #   # #   #",
    "       #### #   # #     #   # #####  #    #   # #   #   #      #  ##      #   # # # #   # #   #",
    "      #   # #   # #     #   # #      #    #   # #   #   #      #  # #     #   # # # #   # #   #",
    "       #### ####   ####  ####  ####  #     #### #   #  ###     #  #  #   ###  # # # #   #  ###",
    "                                              #             #  #",
    "                                           ###               ##",
    "                         #                                           ##   #   ##",
    "                         #                                          #     #     #",
    "####   #### # ##   #### ####  #   # #   # #   # #   # #   # #####   #     #     #    #",
    "#   # #   # ##    #      #    #   # #   # # # #  # #  #   #    #   #      #      #  # # #",
    "#   # #   # #      ###   #    #   #  # #  # # #   #   #   #   #     #     #     #      #",
    "#   # #   # #         #  #    #   #  # #  # # #  # #  #   #  #      #     #     #",
    "####   #### #     ####    ##   ####   #    # #  #   #  #### #####    ##   #   ##",
    "#         #                                               #",
    "#         #                                            ###",
    "                                #",
    "          #   # #         #     #",
    "          #    ##          #    #",
    "        # # #####       #####   #     #",
    "       #  #    ##          #  # # #",
    "#   # #####   # #         #    ###",
    "#####  #          # # #         #",
    "        #",
    "",
};
constexpr std::string_view kSigns[] = {"␠", "⏎", "⇥", "…", "→", "↓", "·"};
constexpr int kWidth = Raster::kLetterWidth - 1, kHeight = Raster::kLetterHeight;
static_assert(std::size(kFont) == 7 * kHeight);

// Takes the first letter off: its place in the font.
int take_letter(std::string_view& rest) {
  for (std::size_t i = 0; i < std::size(kSigns); ++i)
    if (rest.starts_with(kSigns[i])) {
      rest.remove_prefix(kSigns[i].size());
      return static_cast<int>(96 + i);
    }
  const int code = static_cast<unsigned char>(rest[0]);
  rest.remove_prefix(1);
  return code >= 32 && code < 127 ? code - 32 : '?' - 32;
}

bool ink(int letter, int x, int y) {
  const std::string_view line = kFont[letter / 16 * kHeight + y];
  const auto column = static_cast<std::size_t>(letter % 16 * Raster::kLetterWidth + x);
  return column < line.size() && line[column] == '#';
}

// Calls f(column, row) for every dot of a text in one line.
template <class F>
void for_each_dot(std::string_view text, F f) {
  for (int left = 0; !text.empty(); left += Raster::kLetterWidth) {
    const int letter = take_letter(text);
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x)
        if (ink(letter, x, y)) f(left + x, y);
  }
}

constexpr Rgb kInk{29, 31, 35};

void append_bytes(png_structp png, png_bytep data, png_size_t size) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), size);
}

}  // namespace

Raster::Raster(int width, int height)
    : width_(width),
      height_(height),
      pixels_(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 255) {}

std::uint8_t* Raster::at(int x, int y) {
  return pixels_.data() +
         3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x));
}

std::string Raster::drawable(std::string_view safe) {
  std::string out;
  for (const text::Glyph& glyph : text::visible(safe, true)) {
    const bool known =
        static_cast<unsigned char>(glyph.bytes[0]) < 128 || std::ranges::find(kSigns, glyph.bytes) != std::end(kSigns);
    out += known ? glyph.bytes : text::token(glyph.bytes, false);
  }
  return out;
}

int Raster::letters(std::string_view drawable) {
  int count = 0;
  for (; !drawable.empty(); ++count) take_letter(drawable);
  return count;
}

void Raster::fill(int x, int y, int width, int height, Rgb colour) {
  for (int row = std::max(y, 0); row < std::min(y + height, height_); ++row)
    for (int column = std::max(x, 0); column < std::min(x + width, width_); ++column)
      std::ranges::copy(std::array{colour.red, colour.green, colour.blue}, at(column, row));
}

void Raster::frame(int x, int y, int width, int height, Rgb colour) {
  fill(x, y, width, 1, colour);
  fill(x, y + height - 1, width, 1, colour);
  fill(x, y, 1, height, colour);
  fill(x + width - 1, y, 1, height, colour);
}

void Raster::hatch(int x, int y, int width, int height, Rgb ground, Rgb line) {
  fill(x, y, width, height, ground);
  for (int row = y; row < y + height; ++row)
    for (int column = x; column < x + width; ++column)
      if ((row + column) % 6 == 0) fill(column, row, 1, 1, line);
}

void Raster::write(int x, int y, std::string_view drawable, int size) {
  for_each_dot(drawable, [&](int column, int row) { fill(x + column * size, y + row * size, size, size, kInk); });
}

void Raster::write_up(int x, int y, std::string_view drawable, int size) {
  for_each_dot(drawable, [&](int column, int row) { fill(x + row * size, y - (column + 1) * size, size, size, kInk); });
}

std::string Raster::png(std::vector<std::pair<std::string, std::string>> fields) const {
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
  png_set_IHDR(png, info, static_cast<png_uint_32>(width_), static_cast<png_uint_32>(height_), 8, PNG_COLOR_TYPE_RGB,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_text> texts;
  for (auto& [key, value] : fields) {
    png_text field{};
    field.compression = PNG_TEXT_COMPRESSION_NONE;
    field.key = key.data();
    field.text = value.data();
    field.text_length = value.size();
    texts.push_back(field);
  }
  png_set_text(png, info, texts.data(), static_cast<int>(texts.size()));
  png_write_info(png, info);
  for (int y = 0; y < height_; ++y)
    png_write_row(png, pixels_.data() + 3 * static_cast<std::size_t>(y) * static_cast<std::size_t>(width_));
  png_write_end(png, nullptr);
  return bytes;
}

}  // namespace tapehead
