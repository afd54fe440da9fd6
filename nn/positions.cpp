#include "nn/positions.h"

#include <bit>
#include <cmath>

namespace tapehead::inline TAPEHEAD_REAL {

Positions Positions::make(Initialiser& init, const ModelConfig& config) {
  const bool learned = config.positions == PositionKind::learned;
  return {config.positions, learned ? init.normal({config.context, config.width}, config.init_std) : Parameter{},
          config.rope_base, config.rope_fraction};
}

Tensor Positions::operator()(Tensor x, Index first) const {
  Tape& tape = x.tape();
  const Index length = x.size(-2), end = first + length;
  if (kind == PositionKind::sinusoidal) return x + sinusoidal_positions(tape, first, length, x.size(-1));
  if (kind != PositionKind::learned) return x;
  if (end > weight.shape[0])
    fail(tape, "positions",
         "a sequence of " + std::to_string(end) + " tokens, the table has " + std::to_string(weight.shape[0]),
         "shorten the input or train with a larger model.context");
  return x + tape.param(weight.rows(first, end));
}

Tensor Positions::rotation(Tape& tape, Index first, Index length, Index width) const {
  if (kind != PositionKind::rope) return {};
  return rotary_table(tape, first, length, static_cast<Index>(rope_fraction * static_cast<double>(width)) / 2,
                      rope_base);
}

Tensor sinusoidal_positions(Tape& tape, Index first, Index length, Index width) {
  Tensor table = tape.result("sinusoidal_positions", {length, width}, {});
  Real* p = table.value();
  for (Index c = 0; c < width; ++c) {
    const double rate = std::pow(10000.0, -static_cast<double>(c - c % 2) / static_cast<double>(width));
    for (Index t = 0; t < length; ++t) {
      const double angle = static_cast<double>(first + t) * rate;
      p[t * width + c] = static_cast<Real>(c % 2 ? std::cos(angle) : std::sin(angle));
    }
  }
  return table;
}

Tensor rotary_table(Tape& tape, Index first, Index length, Index pairs, double base) {
  Tensor table = tape.result("rotary_table", {length, pairs, 2}, {});
  Real* p = table.value();
  for (Index i = 0; i < pairs; ++i) {
    const double rate = std::pow(base, -static_cast<double>(i) / static_cast<double>(pairs));
    for (Index t = 0; t < length; ++t) {
      const double angle = static_cast<double>(first + t) * rate;
      p[(t * pairs + i) * 2] = static_cast<Real>(std::cos(angle));
      p[(t * pairs + i) * 2 + 1] = static_cast<Real>(std::sin(angle));
    }
  }
  return table;
}

std::vector<Real> alibi_slopes(Index heads) {
  const auto count = static_cast<std::uint64_t>(heads);
  const auto lower = static_cast<Index>(std::bit_floor(count));
  std::vector<Real> slopes;
  for (Index h = 0; h < heads; ++h) {
    const Index of = h < lower ? lower : 2 * lower, number = h < lower ? h + 1 : 2 * (h - lower) + 1;
    slopes.push_back(static_cast<Real>(std::exp2(-8.0 * static_cast<double>(number) / static_cast<double>(of))));
  }
  return slopes;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
