#include "autograd/parameter.h"

#include <algorithm>

#include "autograd/error.h"

namespace tapehead::inline TAPEHEAD_REAL {

Parameter Parameter::rows(Index begin, Index end) const {
  if (begin < 0 || begin > end || end > shape[0])
    throw ShapeError(error_line("parameter",
                                "rows " + std::to_string(begin) + " to " + std::to_string(end) + " of " + shape.str(),
                                {}, "rows lie within the first axis"));
  return {offset + begin * (shape.numel() / std::max<Index>(shape[0], 1)), shape.with(0, end - begin)};
}

Parameter ParameterSet::add(const Shape& shape) {
  constexpr Index line = 64 / sizeof(Real);
  const Parameter p{size(), shape};
  const auto end = static_cast<std::size_t>((size() + shape.numel() + line - 1) / line * line);
  values_.resize(end);
  grads_.resize(end);
  return p;
}

void ParameterSet::zero_grad() { std::fill(grads_.begin(), grads_.end(), Real{0}); }

Index ParameterSet::checked(const Parameter& p) const {
  if (p.offset < 0 || p.offset + p.shape.numel() > size())
    throw ShapeError(error_line("parameter",
                                "offset " + std::to_string(p.offset) + " with shape " + p.shape.str() +
                                    " lies outside a set of " + std::to_string(size()) + " numbers",
                                {}, "use a parameter with the set that made it"));
  return p.offset;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
