// Files for other programs: their bytes against the formats' own documents.
#include "tools/inspect/exports.h"

#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "autograd/error.h"
#include "tests/errors.h"
#include "tests/temporary_folder.h"
#include "tools/inspect/matrices.h"
#include "tools/inspect/raster.h"
#include "train/files.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;

AttentionMap small_map() {
  AttentionMap map;
  map.kind = "decoder";
  map.layer = 1;
  map.rows = map.columns = 2;
  map.weights = {1, 0, 0.1f, 0.9f};
  map.visible = {1, 0, 1, 1};
  map.row_tokens = map.column_tokens = {"a,\"b\"", "<&\x1b"};
  map.ideal = {-1, 0};
  return map;
}

class Exports : public testing::Test {
 protected:
  test::TemporaryFolder folder;
};

TEST_F(Exports, CsvGivesEachFloatBack) {
  const std::string csv = to_csv({small_map()});
  EXPECT_TRUE(contains(csv, "kind,layer,head,query,query_token,key,key_token,visible,weight\n"));
  EXPECT_TRUE(contains(csv, "decoder,1,0,0,\"a,\"\"b\"\"\",1,<&\x1b,0,0\n")) << csv;
  EXPECT_EQ(std::strtof(csv.substr(csv.rfind(",0.") + 1).c_str(), nullptr), 0.9f);
}

// numpy.lib.format: magic, version 1.0, header length, header padded to a multiple of 64 with a line feed at its end.
TEST_F(Exports, NpyIsThatOfNumPy) {
  const std::string bytes = npy(array_of("x", {2, 1}, std::vector<float>{1, 2}));
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t length = static_cast<unsigned char>(bytes[8]);
  EXPECT_EQ((10 + length) % 64, 0u);
  EXPECT_EQ(bytes[9 + length], '\n');
  EXPECT_TRUE(contains(bytes, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }"));
  EXPECT_EQ(bytes.size(), 10 + length + 8);
  EXPECT_TRUE(
      contains(npy(array_of("x", {3}, std::vector<std::uint8_t>(3))), "'|u1', 'fortran_order': False, 'shape': (3,)"));
}

TEST_F(Exports, NpzComesBack) {
  const std::string path = folder.file("x.npz");
  write_npz(path, {array_of("a", {2}, std::vector<float>{1.5f, NAN}), array_of("b/c", {1, 1}, std::vector<float>{3})});
  const auto arrays = read_arrays(path);
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].name, "a");
  EXPECT_EQ(floats_of(arrays[0], path)[0], 1.5f);
  EXPECT_TRUE(std::isnan(floats_of(arrays[0], path)[1]));
  EXPECT_EQ(arrays[1].shape, (std::vector<std::int64_t>{1, 1}));
}

TEST_F(Exports, AreTheSameBytesAtAnyTimeAndPlace) {
  const auto write = [&](const char* name) {
    write_npz(folder.file(name), pattern_arrays({small_map()}));
    return read_file(folder.file(name));
  };
  const std::string here = write("a.npz");
  ::setenv("TZ", "Asia/Tokyo", 1);
  ::tzset();
  EXPECT_EQ(write("b.npz"), here);
  ::unsetenv("TZ");
  ::tzset();
  EXPECT_EQ(to_png(small_map(), {"t", "c"}), to_png(small_map(), {"t", "c"}));
  EXPECT_EQ(to_svg(small_map(), {"t", "c"}), to_svg(small_map(), {"t", "c"}));
}

// The format: the header's size in 8 bytes, a JSON header, the numbers.
TEST_F(Exports, SafetensorsHoldsEveryArrayAndHowItWasMade) {
  ExportFiles files;
  files.safetensors = folder.file("x.safetensors");
  write_exports(files, {small_map()}, small_map(), {"title", "tapehead inspect x"},
                {array_of("q", {1}, std::vector<float>{7})});
  const std::string bytes = read_file(files.safetensors);
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  const auto header = nlohmann::json::parse(bytes.substr(8, size));
  EXPECT_EQ(header["__metadata__"]["command"], "tapehead inspect x --safetensors FILE");
  const auto& pattern = header["blocks.1.attn.hook_pattern"];
  EXPECT_EQ(pattern["dtype"], "F32");
  EXPECT_EQ(pattern["shape"], (std::vector<int>{1, 2, 2}));
  float weights[4];
  std::memcpy(weights, bytes.data() + 8 + size + pattern["data_offsets"][0].get<std::size_t>(), sizeof weights);
  EXPECT_EQ(std::vector<float>(weights, weights + 4), small_map().weights);
  EXPECT_EQ(header["blocks.1.attn.visible"]["dtype"], "U8");
  EXPECT_EQ(header["q"]["data_offsets"][1], bytes.size() - 8 - size);
}

TEST_F(Exports, HalvesAndDoublesAreRead) {
  // 0x3555: 0.333..., the nearest half to a third; 0x0001: the least above 0 (IEEE 754-2008).
  NamedArray halves{"", "<f2", {3}, std::string("\x55\x35\x01\x00\x00\x7c", 6)};
  const auto floats = floats_of(halves, "x");
  EXPECT_NEAR(floats[0], 1.0 / 3, 1e-4);
  EXPECT_EQ(floats[1], std::ldexp(1.0f, -24));
  EXPECT_TRUE(std::isinf(floats[2]));
  const double tenth = 0.1;
  NamedArray doubles{"", "<f8", {1}, std::string(reinterpret_cast<const char*>(&tenth), 8)};
  EXPECT_EQ(floats_of(doubles, "x")[0], 0.1f);
}

TEST_F(Exports, ADamagedFileIsRefusedWhereverItIsCut) {
  const std::string path = folder.file("x.npy");
  const std::string whole = npy(array_of("", {2, 2}, std::vector<float>{1, 0, 0, 1}));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_file_atomically(path, whole.substr(0, size));
    EXPECT_TRUE(contains(error_of<FileError>([&] { read_matrices(path, ""); }), path)) << size;
  }
  const std::string zipped = folder.file("x.npz");
  write_npz(zipped, pattern_arrays({small_map()}));
  const std::string archive = read_file(zipped);
  for (std::size_t size = 0; size < archive.size(); size += 7) {
    write_file_atomically(zipped, archive.substr(0, size));
    EXPECT_TRUE(contains(error_of<FileError>([&] { read_matrices(zipped, ""); }), zipped)) << size;
  }
}

TEST_F(Exports, MatricesNameTheirHeads) {
  const std::string path = folder.file("x.npz");
  std::vector<float> weights(2 * 3 * 2 * 2, 0.5f);
  write_npz(path, {array_of("layers.4.attn", {1, 3, 2, 2}, std::vector<float>(12, 0.5f)),
                   array_of("mask", {2, 2}, std::vector<std::uint8_t>(4))});
  auto maps = read_matrices(path, "");
  ASSERT_EQ(maps.size(), 3u);
  EXPECT_EQ(maps[2].layer, 4);
  EXPECT_EQ(maps[2].head, 2);
  EXPECT_EQ(maps[2].kind, "encoder");
  write_file_atomically(folder.file("x.npy"), npy(array_of("", {2, 3, 2, 2}, weights)));
  write_file_atomically(folder.file("tokens"), "a\nb\n");
  maps = read_matrices(folder.file("x.npy"), folder.file("tokens"));
  ASSERT_EQ(maps.size(), 6u);
  EXPECT_EQ(maps[5].layer, 1);
  EXPECT_EQ(maps[5].row_tokens, (std::vector<std::string>{"a", "b"}));
  write_file_atomically(folder.file("deep.npy"), npy(array_of("", {2, 1, 1, 3, 2, 2}, weights)));
  maps = read_matrices(folder.file("deep.npy"), folder.file("tokens"));
  ASSERT_EQ(maps.size(), 6u);
  EXPECT_EQ(maps[5].layer, 1);
  EXPECT_EQ(maps[5].head, 2);
  write_file_atomically(folder.file("tokens"), "a\n");
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { read_matrices(folder.file("x.npy"), folder.file("tokens")); }),
                       "1 tokens were given, the matrix has 2"));
}

TEST_F(Exports, WhatIsAllZeroAboveTheDiagonalIsMaskedThere) {
  const std::string path = folder.file("x.npy");
  write_file_atomically(path, npy(array_of("", {2, 2}, std::vector<float>{1, 0, 0.5f, 0.5f})));
  const auto maps = read_matrices(path, "");
  EXPECT_EQ(maps[0].kind, "decoder");
  EXPECT_EQ(maps[0].visible, (std::vector<std::uint8_t>{1, 0, 1, 1}));
}

TEST_F(Exports, SvgCarriesTheWholeCaution) {
  const std::string svg = to_svg(small_map(), {"t", "c"}), body = svg.substr(svg.find("</desc>"));
  for (const char* part : {"does not explain the decision", "output projection", "later layers matter too"})
    EXPECT_TRUE(contains(body, part)) << part;
}

TEST_F(Exports, SvgIsWellFormedWithHostileTokens) {
  const std::string svg = to_svg(small_map(), {"<title>", "a & b"});
  EXPECT_TRUE(contains(svg, "&lt;title&gt;") && contains(svg, "a &amp; b") && contains(svg, "&lt;&amp;\\x1b")) << svg;
  for (const char c : svg) EXPECT_TRUE(static_cast<unsigned char>(c) >= 32 || c == '\n');
  AttentionMap large = small_map();
  large.rows = large.columns = 300;
  large.weights.assign(90'000, 0);
  large.visible.assign(90'000, 1);
  large.row_tokens.assign(300, "x");
  large.column_tokens = large.row_tokens;
  large.ideal.clear();
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { to_svg(large, {}); }), "--png"));
  EXPECT_GT(to_png(large, {}).size(), 100u);
}

// A PNG read back: colours by place.
struct Pixels {
  unsigned width = 0, height = 0;
  std::vector<unsigned char> bytes;

  explicit Pixels(const std::string& png) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    if (!png_image_begin_read_from_memory(&image, png.data(), png.size())) return;
    image.format = PNG_FORMAT_RGB;
    bytes.resize(PNG_IMAGE_SIZE(image));
    if (png_image_finish_read(&image, nullptr, bytes.data(), 0, nullptr)) width = image.width, height = image.height;
  }
  std::vector<int> at(unsigned x, unsigned y) const {
    const unsigned char* p = bytes.data() + 3 * (y * width + x);
    return {p[0], p[1], p[2]};
  }
  bool inked(unsigned x, unsigned y) const { return at(x, y)[0] < 60 && at(x, y)[1] < 60 && at(x, y)[2] < 60; }

  // Where a picture of dots, `size` pixels each, stands in the image with nothing between its dots: top left corners.
  std::vector<std::pair<unsigned, unsigned>> places(const std::vector<std::string>& dots, unsigned size) const {
    std::vector<std::pair<unsigned, unsigned>> found;
    const auto rows = static_cast<unsigned>(dots.size()), columns = static_cast<unsigned>(dots[0].size());
    for (unsigned y = 0; y + rows * size <= height; ++y)
      for (unsigned x = 0; x + columns * size <= width; ++x) {
        bool same = true;
        for (unsigned i = 0; same && i < rows * size; ++i)
          for (unsigned j = 0; same && j < columns * size; ++j)
            same = inked(x + j, y + i) == (dots[i / size][j / size] == '#');
        if (same) found.emplace_back(x, y);
      }
    return found;
  }
};

TEST_F(Exports, PngHoldsItsColoursAndItsCaption) {
  const std::string bytes = to_png(small_map(), {"run", "tapehead inspect"});
  const Pixels image(bytes);
  ASSERT_GT(image.width, 0u);
  const std::vector<int> one{253, 231, 37};  // viridis at 1, which the scale ends with, too
  unsigned left = 0, top = 0;
  for (unsigned y = 0; y < image.height && top == 0; ++y)
    for (unsigned x = 0; x < image.width && top == 0; ++x)
      if (image.at(x, y) == one) left = x, top = y;
  for (const unsigned far : {0u, 23u}) EXPECT_EQ(image.at(left + far, top + far), one);
  std::vector<std::vector<int>> masked;  // two greys in turn: no colour of a weight
  for (unsigned i = 0; i < 24; ++i)
    if (const auto c = image.at(left + 24 + i, top + 12); std::ranges::find(masked, c) == masked.end())
      masked.push_back(c);
  ASSERT_EQ(masked.size(), 2u);
  for (const auto& c : masked) EXPECT_LT(c[0] - c[2], 8);
  EXPECT_NE(image.at(left + 48, top + 12), one);
  EXPECT_EQ(image.at(left + 48, top + 12), (std::vector<int>{255, 255, 255}));
  EXPECT_TRUE(contains(bytes, "tapehead inspect") && contains(bytes, "does not explain"));
}

// Letters as this page of the test draws them: their places say which row and column they name.
TEST_F(Exports, PngNamesItsAxes) {
  AttentionMap map = small_map();
  map.row_tokens = {"L", "T"};
  map.column_tokens = {"T", "L"};
  const Pixels image(to_png(map, {"", ""}));
  const std::vector<std::string> L = {"#    ", "#    ", "#    ", "#    ", "#    ", "#    ", "#####"},
                                 T = {"#####", "  #  ", "  #  ", "  #  ", "  #  ", "  #  ", "  #  "};
  const auto turned = [](const std::vector<std::string>& dots) {  // a quarter to the left
    std::vector<std::string> out(dots[0].size());
    for (std::size_t column = 0; column < out.size(); ++column)
      for (const std::string& row : dots) out[out.size() - 1 - column] += row[column];
    return out;
  };
  unsigned left = 0, top = 0;  // of the cells
  for (unsigned y = 0; y < image.height && top == 0; ++y)
    for (unsigned x = 0; x < image.width && top == 0; ++x)
      if (image.at(x, y) == std::vector<int>{253, 231, 37}) left = x, top = y;
  const auto in_gutter = [&](std::vector<std::pair<unsigned, unsigned>> places, bool rows) {
    std::erase_if(places,
                  [&](auto p) { return rows ? p.first >= left || p.second < top : p.first < left || p.second >= top; });
    return places;
  };
  for (const auto& [letter, row] : {std::pair(L, 0u), std::pair(T, 1u)}) {
    const auto beside = in_gutter(image.places(letter, 2), true),
               above = in_gutter(image.places(turned(letter), 2), false);
    ASSERT_EQ(beside.size(), 1u);
    EXPECT_EQ((beside[0].second - top) / 24, row);
    ASSERT_EQ(above.size(), 1u);
    EXPECT_EQ((above[0].first - left) / 24, 1 - row);
  }
  EXPECT_TRUE(in_gutter(image.places(turned(L), 2), true).empty());
}

TEST_F(Exports, PngSpellsOutWhatItHasNoLettersFor) {
  EXPECT_EQ(Raster::drawable("a␠é"), "a␠\\u{e9}");
  EXPECT_EQ(Raster::letters("a␠…"), 3);
  AttentionMap map = small_map();
  map.row_tokens = map.column_tokens = {"\x1b[2J\xff", " \n"};
  EXPECT_GT(Pixels(to_png(map, {"\x1b", "\x1b"})).width, 0u);
}

TEST_F(Exports, PngOfManyTokensNamesEveryFew) {
  AttentionMap map = small_map();
  map.rows = map.columns = 300;
  map.weights.assign(90'000, 0);
  map.visible.assign(90'000, 1);
  map.row_tokens.assign(300, "L");
  map.column_tokens = map.row_tokens;
  map.ideal.clear();
  // 3 pixels a cell and 10 a line of letters: every fourth row, that is 75 of them, and no letter over another
  const Pixels image(to_png(map, {"", ""}));
  std::vector<unsigned> cells;  // lines of the picture that hold some
  for (unsigned y = 0; y < image.height; ++y)
    if (image.at(200, y) == std::vector<int>{68, 1, 84}) cells.push_back(y);
  const auto L = image.places({"#    ", "#    ", "#    ", "#    ", "#    ", "#    ", "#####"}, 1);
  const auto in_gutter = [&](auto p) {
    return p.first < 110 && p.second + 3 >= cells.front() && p.second <= cells[899];
  };
  EXPECT_EQ(std::ranges::count_if(L, in_gutter), 75);
}

}  // namespace
}  // namespace tapehead
