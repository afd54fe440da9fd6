#include "tools/inspect/colour_map.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>

namespace tapehead {

namespace {
constexpr Rgb kViridis[] = {  // values 0, 17, 34, ... 255 of 0 .. 255
    {68, 1, 84},    {72, 26, 108},  {71, 47, 125},  {65, 68, 135},  {57, 86, 140},  {49, 104, 142},
    {42, 120, 142}, {35, 136, 142}, {31, 152, 139}, {34, 168, 132}, {53, 183, 121}, {84, 197, 104},
    {122, 209, 81}, {165, 219, 54}, {210, 226, 27}, {253, 231, 37}};
constexpr std::size_t kSteps = std::size(kViridis) - 1;

std::uint8_t mix(std::uint8_t a, std::uint8_t b, double t) {
  return static_cast<std::uint8_t>(std::lround(a + (b - a) * t));
}

double linear_light(std::uint8_t channel) {
  const double c = channel / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}
}  // namespace

Rgb viridis(double weight) {
  const double at = std::clamp(weight, 0.0, 1.0) * kSteps;
  const auto i = std::min(static_cast<std::size_t>(at), kSteps - 1);
  const Rgb a = kViridis[i], b = kViridis[i + 1];
  const double t = at - static_cast<double>(i);
  return {mix(a.red, b.red, t), mix(a.green, b.green, t), mix(a.blue, b.blue, t)};
}

Rgb ink_on(Rgb b) {
  const double light = 0.2126 * linear_light(b.red) + 0.7152 * linear_light(b.green) + 0.0722 * linear_light(b.blue);
  const bool black = (light + 0.05) * (light + 0.05) > 1.05 * 0.05;  // its contrast exceeds white's
  return black ? Rgb{0, 0, 0} : Rgb{255, 255, 255};
}

int palette_index(Rgb colour) {
  constexpr int kCube[] = {0, 95, 135, 175, 215, 255};
  const bool grey = colour.red == colour.green && colour.green == colour.blue;
  int best = 16, best_distance = std::numeric_limits<int>::max();
  const auto consider = [&](int index, int r, int g, int b) {
    constexpr int kHue = 80;  // least difference of channels that looks like a colour
    if (grey != (std::max({r, g, b}) - std::min({r, g, b}) < kHue)) return;
    const int dr = r - colour.red, dg = g - colour.green, db = b - colour.blue;
    const int distance = dr * dr + dg * dg + db * db;
    if (distance < best_distance) best = index, best_distance = distance;
  };
  for (int i = 0; i < 216; ++i) consider(16 + i, kCube[i / 36], kCube[i / 6 % 6], kCube[i % 6]);
  for (int i = 0; i < 24; ++i) consider(232 + i, 8 + 10 * i, 8 + 10 * i, 8 + 10 * i);
  return best;
}

}  // namespace tapehead
