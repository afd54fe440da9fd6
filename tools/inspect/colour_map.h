// Colours of weights: viridis, which rises evenly in lightness, so that it also reads in grey and for every kind of
// colour vision. Sixteen of matplotlib's 256 published values (Smith and van der Walt 2015), linear in between: at
// most 7 of 255 off.
#pragma once

#include <cstdint>

namespace tapehead {

struct Rgb {
  std::uint8_t red, green, blue;
  bool operator==(const Rgb&) const = default;
};

/// The colour of a weight in [0, 1]; numbers beyond are clamped. Not for NaN.
Rgb viridis(double weight);
/// Black or white, whichever stands out against `background` more (contrast ratio of WCAG 2.2).
Rgb ink_on(Rgb background);
/// The nearest of the colours 16 to 255 of a terminal's palette (a 6 x 6 x 6 cube and 24 greys): for a grey the nearest
/// grey, for another colour the nearest that is clearly none, so that no weight is taken for a masked cell.
int palette_index(Rgb colour);

}  // namespace tapehead
