// Which sources a query may see. One polarity everywhere: true means visible.
#pragma once

#include "autograd/tape.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// A source is visible when every part allows it.
struct Mask {
  bool causal = false;  // query t sees sources up to t + S - T: aligned to the end, as in decoding. T > S is refused
  Bools allowed = {};   // broadcasts to [..., T, S]; empty: all visible
};

/// A mask laid out against weights [..., T, S], for kernels. `item` counts the leading axes in row-major order.
class VisibleSources {
 public:
  /// Throws ShapeError when `allowed` does not broadcast, when a causal mask meets T > S, and when a query may see no
  /// source: naming the query and its batch.
  VisibleSources(Tape& tape, const Mask& mask, const Shape& weights);

  /// Query t sees no source from this one on.
  Index end(Index t) const { return causal_ ? t + sources_ - queries_ + 1 : sources_; }
  /// Calls f(s) for each source before end(t) that query t of `item` may not see.
  template <class F>
  void for_each_hidden(Index item, Index t, F f) const {
    if (!allowed_) return;
    const bool* row = row_of(item, t);
    for (Index s = 0, n = end(t); s < n; ++s)
      if (!row[s * column_]) f(s);
  }
  /// Flags [S] of the sources that no query of `item` may see; nullptr when there are none in any item.
  const bool* unseen(Index item) const { return unseen_ ? unseen_ + item * sources_ : nullptr; }

 private:
  const bool* row_of(Index item, Index t) const;

  Shape leading_;
  Index queries_, sources_;
  bool causal_;
  const bool* allowed_ = nullptr;
  Strides steps_{};  // of `allowed_` along the leading axes; 0 where it repeats
  Index row_ = 0, column_ = 0;
  const bool* unseen_ = nullptr;
};

}  // namespace tapehead::inline TAPEHEAD_REAL
