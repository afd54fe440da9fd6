// Counter-based random numbers: the number for (seed, purpose, step, ordinal, index) is a pure function of these,
// so no order of calls, thread or shard changes it and nothing needs to be saved but the seed and the step.
//
// The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). The
// mapping from bits to uniforms, normals, integers and shuffles is our own: the standard library's distributions
// differ between implementations.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

namespace tapehead::rng {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// What a stream is for. Values are part of the meaning of a seed: never renumber.
enum class Purpose : std::uint16_t {
  init = 1,
  training_data = 2,
  evaluation_data = 3,
  dropout = 4,
  sampling = 5,
  check = 6
};

/// Random access to one stream of numbers.
class Stream {
 public:
  Stream(std::uint64_t seed, Purpose purpose, std::uint32_t step = 0, std::uint32_t ordinal = 0)
      : seed_(seed), purpose_(purpose), step_(step), ordinal_(ordinal) {}

  /// The index-th 32 random bits; indices below 2^50.
  std::uint32_t bits(std::uint64_t index) const { return block(index / 4)[index % 4]; }
  /// The index-th uniform of [0, 1), a multiple of 2^-53.
  double uniform(std::uint64_t index) const;
  /// The index-th normal with mean 0 and variance 1 (Box and Muller 1958).
  double normal(std::uint64_t index) const;
  /// Words 4 * index to 4 * index + 3.
  std::array<std::uint32_t, 4> block(std::uint64_t index) const;

 private:
  std::uint64_t seed_;
  Purpose purpose_;
  std::uint32_t step_, ordinal_;
};

/// Reads a stream in order, for code that draws an unknown number of times.
class Generator {
 public:
  explicit Generator(Stream stream) : stream_(stream) {}
  double uniform() { return stream_.uniform(next_++); }
  double normal() { return stream_.normal(next_++); }
  /// Uniform over 0 .. n - 1 without bias, n > 0 (Lemire 2019, multiply and reject).
  std::uint32_t below(std::uint32_t n);
  template <class T>
  void shuffle(std::span<T> items) {  // Fisher and Yates
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(static_cast<std::uint32_t>(i))]);
  }

 private:
  Stream stream_;
  std::uint64_t next_ = 0;
};

}  // namespace tapehead::rng
