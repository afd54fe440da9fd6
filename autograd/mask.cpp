#include "autograd/mask.h"

#include <algorithm>

namespace tapehead::inline TAPEHEAD_REAL {

VisibleSources::VisibleSources(Tape& tape, const Mask& mask, const Shape& weights)
    : leading_(weights.first(weights.rank() - 2)), queries_(weights[-2]), sources_(weights[-1]), causal_(mask.causal) {
  if (causal_ && queries_ > sources_)
    fail(tape, "attention",
         "causal with " + std::to_string(queries_) + " queries and " + std::to_string(sources_) + " sources",
         "query t sees sources up to t + S - T, so T may not exceed S");
  const Index items = leading_.numel();
  if (sources_ == 0 && items * queries_ > 0)
    fail(tape, "attention", "query 0 may see no source: there are none", "give at least one key");
  if (!mask.allowed.defined()) return;

  const Shape& shape = mask.allowed.shape();
  if (broadcast_shapes(tape, "attention", shape, weights) != weights)
    fail(tape, "attention", "allowed is " + shape.str() + ", the weights are " + weights.str(),
         "allowed broadcasts to [..., T, S], true means visible");
  const auto step = [&, dense = shape.row_major()](int from_end) {  // along an axis of `weights`
    const int axis = shape.rank() - from_end;
    return axis < 0 || shape[axis] == 1 ? Index{0} : dense[static_cast<std::size_t>(axis)];
  };
  allowed_ = mask.allowed.data();
  column_ = step(1);
  row_ = step(2);
  for (int axis = 0; axis < leading_.rank(); ++axis)
    steps_[static_cast<std::size_t>(axis)] = step(leading_.rank() - axis + 2);

  bool* unseen = tape.scratch<bool>(items * sources_);
  std::fill_n(unseen, items * sources_, true);
  for (Index item = 0; item < items; ++item)
    for (Index t = 0; t < queries_; ++t) {
      const bool* row = row_of(item, t);
      bool any = false;
      for (Index s = 0; s < end(t); ++s)
        if (row[s * column_]) any = true, unseen[item * sources_ + s] = false;
      if (any) continue;
      std::string query = "query " + std::to_string(t);
      if (leading_.rank() > 0) query += " of batch " + std::to_string(item / (items / leading_[0]));
      fail(tape, "attention", query + " may see no source",
           "let every query see at least one key (a BOS token, or its own position)");
    }
  if (std::find(unseen, unseen + items * sources_, true) != unseen + items * sources_) unseen_ = unseen;
}

const bool* VisibleSources::row_of(Index item, Index t) const {
  Index offset = t * row_;
  for (int axis = leading_.rank() - 1; axis >= 0; --axis) {
    offset += item % leading_[axis] * steps_[static_cast<std::size_t>(axis)];
    item /= leading_[axis];
  }
  return allowed_ + offset;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
