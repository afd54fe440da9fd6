// Which sources a query may see. One polarity everywhere: true means visible.
#pragma once

#include <array>
#include <span>
#include <string>

#include "autograd/tape.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// A source is visible when every part allows it; `&` joins parts: Mask::causal() & Mask::padding(lengths).
/// With T queries and S sources, query t stands at position t + S - T: the queries are the last T positions, as in
/// decoding. Causal and window masks with T > S are refused.
class Mask {
 public:
  Mask() = default;  // everything is visible
  /// Sources up to the query's own position.
  static Mask causal();
  /// Sources fewer than n positions away, n >= 1; joined with causal(): the last n. Throws ShapeError for n < 1.
  static Mask window(Index n);
  /// Source s of batch b where s < lengths[b]. Batches are the first leading axis of the weights; one length serves
  /// all. The lengths are read when attention is called, not kept.
  static Mask padding(std::span<const Index> lengths);
  /// Where `visible` is true; it broadcasts to the weights [..., T, S].
  static Mask allow(Bools visible);
  /// Throws ShapeError beyond kMost parts of one kind.
  friend Mask operator&(Mask a, const Mask& b);

 private:
  friend class VisibleSources;
  static constexpr std::size_t kMost = 4;
  void add(Bools visible);
  void add(std::span<const Index> lengths);

  bool causal_ = false;
  Index window_ = 0;  // 0: none
  std::array<Bools, kMost> allowed_{};
  std::array<std::span<const Index>, kMost> lengths_{};
  std::size_t allowed_count_ = 0, lengths_count_ = 0;
};

/// A mask laid out against weights [..., T, S], for kernels. `item` counts the leading axes in row-major order.
class VisibleSources {
 public:
  /// Throws ShapeError when a part does not fit the weights, and when a query may see no source: naming the query and
  /// its batch.
  VisibleSources(Tape& tape, const Mask& mask, const Shape& weights);

  /// Query t of `item` sees no source before begin() and none from end() on.
  Index begin(Index t) const { return window_ ? std::max<Index>(position(t) - window_ + 1, 0) : 0; }
  Index end(Index item, Index t) const {
    Index end = sources_;
    if (causal_) end = position(t) + 1;
    if (window_) end = std::min(end, position(t) + window_);
    if (lengths_) end = std::min(end, lengths_[item / items_a_batch_]);
    return end;
  }
  /// Calls f(s) for each source first <= s < last that query t of `item` may not see.
  template <class F>
  void for_each_hidden(Index item, Index t, Index first, Index last, F f) const {
    const Index from = std::clamp(begin(t), first, last), to = std::clamp(end(item, t), from, last);
    for (Index s = first; s < from; ++s) f(s);
    for (Index s = to; s < last; ++s) f(s);
    for (std::size_t i = 0; i < part_count_; ++i) {
      const bool* row = parts_[i].row_of(leading_, item, t);
      for (Index s = from; s < to; ++s)
        if (!row[s * parts_[i].column]) f(s);
    }
  }
  /// Flags [S] of the sources that no query of `item` may see; nullptr when begin() and end() already leave them out.
  const bool* unseen(Index item) const { return unseen_ ? unseen_ + item * sources_ : nullptr; }
  /// Flags [S] of what query t of `item` sees.
  void row(Index item, Index t, bool* visible) const;

 private:
  struct Part {
    const bool* data;
    Strides steps;  // along the leading axes; 0 where it repeats
    Index row, column;
    const bool* row_of(const Shape& leading, Index item, Index t) const;
  };
  Part part_of(Tape& tape, const Bools& allowed, const Shape& weights) const;
  void take_lengths(Tape& tape, const Mask& mask);
  void find_unseen(Tape& tape);
  Index position(Index t) const { return t + sources_ - queries_; }

  Shape leading_;
  Index queries_, sources_, items_a_batch_;
  bool causal_;
  Index window_;
  const Index* lengths_ = nullptr;  // [batches]
  std::array<Part, Mask::kMost> parts_{};
  std::size_t part_count_ = 0;
  const bool* unseen_ = nullptr;
};

/// The mask as it applies to weights [..., T, S]: a line a query, `#` visible and `.` masked, a block for each index of
/// the leading axes. Throws as attention would.
std::string picture(Tape& tape, const Mask& mask, const Shape& weights);

}  // namespace tapehead::inline TAPEHEAD_REAL
