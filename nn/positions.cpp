#include "nn/positions.h"

#include <cmath>

namespace tapehead::inline TAPEHEAD_REAL {

Positions Positions::make(Initialiser& init, PositionKind kind, Index context, Index width, double std) {
  return {kind, kind == PositionKind::learned ? init.normal({context, width}, std) : Parameter{}};
}

Tensor Positions::operator()(Tensor x) const {
  if (kind == PositionKind::none) return x;
  Tape& tape = x.tape();
  const Index length = x.size(-2);
  if (kind == PositionKind::sinusoidal) return x + sinusoidal_positions(tape, length, x.size(-1));
  if (length > weight.shape[0])
    fail(tape, "positions",
         "a sequence of " + std::to_string(length) + " tokens, the table has " + std::to_string(weight.shape[0]),
         "shorten the input or train with a larger model.context");
  return x + tape.param(weight.rows(0, length));
}

Tensor sinusoidal_positions(Tape& tape, Index length, Index width) {
  Tensor table = tape.result("sinusoidal_positions", {length, width}, {});
  Real* p = table.value();
  for (Index c = 0; c < width; ++c) {
    const double rate = std::pow(10000.0, -static_cast<double>(c - c % 2) / static_cast<double>(width));
    for (Index t = 0; t < length; ++t) {
      const double angle = static_cast<double>(t) * rate;
      p[t * width + c] = static_cast<Real>(c % 2 ? std::cos(angle) : std::sin(angle));
    }
  }
  return table;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
