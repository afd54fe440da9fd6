#include "autograd/shape.h"

#include <algorithm>

#include "autograd/error.h"

namespace tapehead {

namespace {
constexpr Index kMaxElements = Index{1} << 47;
}

Shape::Shape(const Index* sizes, int rank) : rank_(rank) {
  if (rank < 0 || rank > kMaxRank)
    throw ShapeError(error_line("shape",
                                std::to_string(rank) + " axes, at most " + std::to_string(kMaxRank) + " are supported",
                                {}, "merge leading axes with reshape"));
  Index elements = 1;
  for (int i = 0; i < rank; ++i) {
    if (sizes[i] < 0)
      throw ShapeError(error_line("shape", "axis " + std::to_string(i) + " has size " + std::to_string(sizes[i]), {},
                                  "sizes are 0 or more"));
    if (sizes[i] > 0 && elements > kMaxElements / sizes[i])
      throw ShapeError(error_line("shape", "more than 2^47 elements", {}, "use smaller sizes"));
    elements *= std::max<Index>(sizes[i], 1);  // a 0 elsewhere must not hide an absurd size
    sizes_[static_cast<std::size_t>(i)] = sizes[i];
  }
}

Index Shape::numel() const {
  Index n = 1;
  for (int i = 0; i < rank_; ++i) n *= sizes_[static_cast<std::size_t>(i)];
  return n;
}

int Shape::axis_index(int axis) const {
  if (axis < -rank_ || axis >= rank_)
    throw ShapeError(error_line("shape", "no axis " + std::to_string(axis) + " in " + str(), {},
                                "axes are " + std::to_string(-rank_) + " to " + std::to_string(rank_ - 1)));
  return axis < 0 ? axis + rank_ : axis;
}

Shape Shape::with(int axis, Index size) const {
  Shape s = *this;
  s.sizes_[static_cast<std::size_t>(axis_index(axis))] = size;
  return {s.sizes_.data(), rank_};
}

Shape Shape::without(int axis) const {
  Shape s = *this;
  auto at = s.sizes_.begin() + axis_index(axis);
  std::copy(at + 1, s.sizes_.begin() + rank_, at);
  return {s.sizes_.data(), rank_ - 1};
}

Shape Shape::inserted(int axis, Index size) const {
  std::array<Index, kMaxRank + 1> sizes{};
  const int at = axis < 0 ? axis + rank_ + 1 : axis;
  if (at < 0 || at > rank_) axis_index(axis);
  for (int i = 0; i <= rank_; ++i)
    sizes[static_cast<std::size_t>(i)] = i < at ? (*this)[i] : i == at ? size : (*this)[i - 1];
  return {sizes.data(), rank_ + 1};
}

Strides Shape::row_major() const {
  Strides strides{};
  Index step = 1;
  for (int i = rank_ - 1; i >= 0; --i) {
    strides[static_cast<std::size_t>(i)] = step;
    step *= sizes_[static_cast<std::size_t>(i)];
  }
  return strides;
}

std::string Shape::str() const {
  std::string s = "[";
  for (int i = 0; i < rank_; ++i) s += (i ? ", " : "") + std::to_string(sizes_[static_cast<std::size_t>(i)]);
  return s + "]";
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::equal(sizes_.begin(), sizes_.begin() + rank_, other.sizes_.begin());
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<Index, kMaxRank> sizes{};
  for (int i = 0; i < rank; ++i) {
    const int ia = i - rank + a.rank(), ib = i - rank + b.rank();
    const Index sa = ia < 0 ? 1 : a[ia], sb = ib < 0 ? 1 : b[ib];
    if (sa != sb && sa != 1 && sb != 1) return {};
    sizes[static_cast<std::size_t>(i)] = sa == 1 ? sb : sa;
  }
  return Shape(sizes.data(), rank);
}

}  // namespace tapehead
