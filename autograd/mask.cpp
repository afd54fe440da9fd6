#include "autograd/mask.h"

#include <algorithm>

#include "autograd/error.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {
[[noreturn]] void refuse(const std::string& fact, const char* hint) {
  throw ShapeError(error_line("mask", fact, {}, hint));
}
}  // namespace

Mask Mask::causal() {
  Mask mask;
  mask.causal_ = true;
  return mask;
}

Mask Mask::window(Index n) {
  if (n < 1) refuse("a window of " + std::to_string(n) + " sources", "1 shows each query its own position alone");
  Mask mask;
  mask.window_ = n;
  return mask;
}

Mask Mask::padding(std::span<const Index> lengths) {
  Mask mask;
  mask.add(lengths);
  return mask;
}

Mask Mask::allow(Bools visible) {
  Mask mask;
  mask.add(visible);
  return mask;
}

void Mask::add(Bools visible) {
  if (allowed_count_ == kMost)
    refuse("more than " + std::to_string(kMost) + " masks of flags", "join the flags before");
  allowed_[allowed_count_++] = visible;
}

void Mask::add(std::span<const Index> lengths) {
  if (lengths_count_ == kMost) refuse("more than " + std::to_string(kMost) + " paddings", "join the lengths before");
  lengths_[lengths_count_++] = lengths;
}

Mask operator&(Mask a, const Mask& b) {
  a.causal_ |= b.causal_;
  if (b.window_) a.window_ = a.window_ ? std::min(a.window_, b.window_) : b.window_;
  for (std::size_t i = 0; i < b.allowed_count_; ++i) a.add(b.allowed_[i]);
  for (std::size_t i = 0; i < b.lengths_count_; ++i) a.add(b.lengths_[i]);
  return a;
}

VisibleSources::VisibleSources(Tape& tape, const Mask& mask, const Shape& weights)
    : leading_(weights.first(weights.rank() - 2)),
      queries_(weights[-2]),
      sources_(weights[-1]),
      items_a_batch_(leading_.rank() ? leading_.numel() / std::max<Index>(leading_[0], 1) : 1),
      causal_(mask.causal_),
      window_(mask.window_) {
  if ((causal_ || window_) && queries_ > sources_)
    fail(tape, "attention",
         std::string(causal_ ? "causal" : "a window") + " with " + std::to_string(queries_) + " queries and " +
             std::to_string(sources_) + " sources",
         "query t stands at position t + S - T, so T may not exceed S");
  if (sources_ == 0 && leading_.numel() * queries_ > 0)
    fail(tape, "attention", "query 0 may see no source: there are none", "give at least one key");
  for (std::size_t i = 0; i < mask.allowed_count_; ++i)
    if (mask.allowed_[i].defined()) parts_[part_count_++] = part_of(tape, mask.allowed_[i], weights);
  take_lengths(tape, mask);
  if (part_count_ > 0 || lengths_) find_unseen(tape);
}

VisibleSources::Part VisibleSources::part_of(Tape& tape, const Bools& allowed, const Shape& weights) const {
  const Shape& shape = allowed.shape();
  if (broadcast_shapes(tape, "attention", shape, weights) != weights)
    fail(tape, "attention", "allowed is " + shape.str() + ", the weights are " + weights.str(),
         "allowed broadcasts to [..., T, S], true means visible");
  const auto step = [&, dense = shape.row_major()](int from_end) {  // along an axis of `weights`
    const int axis = shape.rank() - from_end;
    return axis < 0 || shape[axis] == 1 ? Index{0} : dense[static_cast<std::size_t>(axis)];
  };
  Part part{allowed.data(), {}, step(2), step(1)};
  for (int axis = 0; axis < leading_.rank(); ++axis)
    part.steps[static_cast<std::size_t>(axis)] = step(leading_.rank() - axis + 2);
  return part;
}

// The smallest of all lengths given for a batch.
void VisibleSources::take_lengths(Tape& tape, const Mask& mask) {
  if (mask.lengths_count_ == 0) return;
  const Index batches = leading_.rank() ? leading_[0] : 1;
  auto* smallest = tape.scratch<Index>(batches);
  std::fill_n(smallest, batches, sources_);
  for (std::size_t i = 0; i < mask.lengths_count_; ++i) {
    const std::span<const Index> lengths = mask.lengths_[i];
    if (lengths.size() != 1 && static_cast<Index>(lengths.size()) != batches)
      fail(tape, "attention",
           std::to_string(lengths.size()) + " lengths for weights whose first leading axis has " +
               std::to_string(batches),
           "padding takes one length for each batch, or one for all");
    for (Index b = 0; b < batches; ++b) {
      const Index length = lengths[lengths.size() == 1 ? 0 : static_cast<std::size_t>(b)];
      if (length < 0 || length > sources_)
        fail(tape, "attention",
             "length " + std::to_string(length) + " of batch " + std::to_string(b) + " with " +
                 std::to_string(sources_) + " sources",
             "a length counts the sources that are no padding");
      smallest[b] = std::min(smallest[b], length);
    }
  }
  lengths_ = smallest;
}

void VisibleSources::find_unseen(Tape& tape) {
  const Index items = leading_.numel();
  bool* unseen = tape.scratch<bool>(items * sources_);
  bool* visible = tape.scratch<bool>(sources_);
  std::fill_n(unseen, items * sources_, true);
  for (Index item = 0; item < items; ++item)
    for (Index t = 0; t < queries_; ++t) {
      row(item, t, visible);
      bool any = false;
      for (Index s = 0; s < sources_; ++s)
        if (visible[s]) any = true, unseen[item * sources_ + s] = false;
      if (any) continue;
      std::string query = "query " + std::to_string(t);
      if (leading_.rank() > 0) query += " of batch " + std::to_string(item / items_a_batch_);
      fail(tape, "attention", query + " may see no source",
           "let every query see at least one key (a BOS token, or its own position)");
    }
  if (part_count_ > 0 && std::find(unseen, unseen + items * sources_, true) != unseen + items * sources_)
    unseen_ = unseen;
}

void VisibleSources::row(Index item, Index t, bool* visible) const {
  std::fill_n(visible, sources_, true);
  for_each_hidden(item, t, 0, sources_, [visible](Index s) { visible[s] = false; });
}

const bool* VisibleSources::Part::row_of(const Shape& leading, Index item, Index t) const {
  Index offset = t * row;
  for (int axis = leading.rank() - 1; axis >= 0; --axis) {
    offset += item % leading[axis] * steps[static_cast<std::size_t>(axis)];
    item /= leading[axis];
  }
  return data + offset;
}

std::string picture(Tape& tape, const Mask& mask, const Shape& weights) {
  const VisibleSources sources(tape, mask, weights);
  const Index items = weights.first(weights.rank() - 2).numel(), T = weights[-2], S = weights[-1];
  bool* visible = tape.scratch<bool>(S);
  std::string text;
  for (Index item = 0; item < items; ++item) {
    if (item > 0) text += '\n';
    for (Index t = 0; t < T; ++t) {
      sources.row(item, t, visible);
      for (Index s = 0; s < S; ++s) text += visible[s] ? '#' : '.';
      text += '\n';
    }
  }
  return text;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
