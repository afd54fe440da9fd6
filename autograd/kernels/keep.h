// Which elements dropout keeps: a function of (seed, step, ordinal of the op in the pass, element's number in the whole
// batch), the same in float and double, for any number of shards and threads.
#pragma once

#include <algorithm>

#include "autograd/rng.h"
#include "autograd/tape.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct Keep {
  rng::Stream stream;
  std::uint32_t threshold;  // p in units of 2^-32
  Real factor;              // 1 / (1 - p), of what stays

  /// The next random op of the tape's pass, 0 <= p < 1.
  Keep(Tape& tape, Real p)
      : stream(tape.random.seed, rng::Purpose::dropout, tape.random.step, tape.next_ordinal()), factor(1 / (1 - p)) {
    const double share =
        std::min(static_cast<double>(static_cast<float>(p)), 1 - 0x1p-32);  // as float in both precisions
    threshold = static_cast<std::uint32_t>(share * 0x1p32);
  }

  /// f(i, keep) for elements first + i, i below count: an element stays when its 32 bits are at least the threshold.
  template <class F>
  void for_each(std::uint64_t first, Index count, F f) const {
    for (Index i = 0; i < count;) {
      const std::uint64_t at = first + static_cast<std::uint64_t>(i);
      const auto words = stream.block(at / 4);
      for (std::size_t w = at % 4; w < 4 && i < count; ++w, ++i) f(i, words[w] >= threshold);
    }
  }
  /// y_i = keep ? x_i factor : 0
  void apply(std::uint64_t first, Index count, const Real* x, Real* y) const {
    for_each(first, count, [=, this](Index i, bool keep) { y[i] = keep ? factor * x[i] : 0; });
  }
};

}  // namespace tapehead::inline TAPEHEAD_REAL
