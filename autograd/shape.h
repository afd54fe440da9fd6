// Sizes of a tensor's axes, outermost first. A value type of fixed size: it lives in closures and on the stack
// and never allocates. Dimension key used everywhere: B batch, T target positions, S source positions,
// C channels (model width), H heads, D head width, F feed-forward width, V vocabulary.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

namespace tapehead {

using Index = std::int64_t;
constexpr int kMaxRank = 6;
/// Distance in elements between neighbours along each axis.
using Strides = std::array<Index, kMaxRank>;

class Shape {
 public:
  Shape() = default;  // rank 0: one number
  /// Throws ShapeError for a negative size, more than kMaxRank axes, or a product beyond 2^47 elements.
  Shape(std::initializer_list<Index> sizes) : Shape(sizes.begin(), static_cast<int>(sizes.size())) {}
  Shape(const Index* sizes, int rank);

  int rank() const { return rank_; }
  Index numel() const;
  /// Size of `axis`; a negative axis counts from the end. Throws ShapeError when there is no such axis.
  Index operator[](int axis) const { return sizes_[static_cast<std::size_t>(axis_index(axis))]; }
  /// `axis` as a number from 0 to rank - 1.
  int axis_index(int axis) const;

  /// Copies with one axis changed, taken away or put in, or with the first or last axes alone.
  Shape with(int axis, Index size) const;
  Shape without(int axis) const;
  Shape inserted(int axis, Index size) const;
  Shape first(int count) const { return {sizes_.data(), count}; }

  /// Strides of a tensor that lies in memory row by row, without gaps.
  Strides row_major() const;
  std::string str() const;  // "[2, 3]"
  bool operator==(const Shape& other) const;

 private:
  std::array<Index, kMaxRank> sizes_{};
  int rank_ = 0;
};

/// NumPy broadcasting: axes align at the end, a size of 1 or a missing axis repeats. Nothing when two sizes differ and
/// neither is 1.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

}  // namespace tapehead
