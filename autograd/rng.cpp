#include "autograd/rng.h"

#include <cmath>
#include <numbers>

namespace tapehead::rng {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0], p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
    k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};  // golden ratio and sqrt(3) - 1
  }
  return c;
}

std::array<std::uint32_t, 4> Stream::block(std::uint64_t index) const {
  const auto high = static_cast<std::uint32_t>(index >> 32) & 0xFFFFu;
  return philox4x32(
      {static_cast<std::uint32_t>(index), high | static_cast<std::uint32_t>(purpose_) << 16, step_, ordinal_},
      {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
}

namespace {
double unit(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}
}  // namespace

double Stream::uniform(std::uint64_t index) const {
  const auto w = block(index);
  return unit(w[0], w[1]);
}

double Stream::normal(std::uint64_t index) const {
  const auto w = block(index);
  const double radius = std::sqrt(-2 * std::log(1 - unit(w[0], w[1])));  // 1 - u lies in (0, 1]: the log is finite
  return radius * std::cos(2 * std::numbers::pi * unit(w[2], w[3]));
}

std::uint32_t Generator::below(std::uint32_t n) {
  const std::uint32_t reject = -n % n;  // 2^32 mod n
  std::uint64_t product;
  do product = std::uint64_t{stream_.bits(4 * next_++)} * n;
  while (static_cast<std::uint32_t>(product) < reject);
  return static_cast<std::uint32_t>(product >> 32);
}

}  // namespace tapehead::rng
