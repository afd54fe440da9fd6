// Learned numbers. All parameters of a model lie in one ParameterSet: a flat block of values and one of gradients.
//
// A Parameter is a handle (where, which shape), so a module that holds handles is a plain value: copying it
// copies handles, and copying the set copies the numbers. Two handles with the same offset are one tied parameter.
#pragma once

#include <new>
#include <span>
#include <vector>

#include "autograd/real.h"
#include "autograd/shape.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct Parameter {
  Index offset = -1;  // elements from the start of the set; -1: no parameter
  Shape shape;

  explicit operator bool() const { return offset >= 0; }
  bool operator==(const Parameter&) const = default;
  /// Rows begin .. end - 1 of the first axis, as a handle of its own.
  Parameter rows(Index begin, Index end) const;
};

/// Lets std::vector hold whole cache lines, so that vector loads of a parameter's start never straddle two.
template <class T>
struct CacheAligned {
  using value_type = T;
  CacheAligned() = default;
  template <class U>
  CacheAligned(const CacheAligned<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* p, std::size_t) { ::operator delete (p, std::align_val_t{64}); }
  bool operator==(const CacheAligned&) const { return true; }
};
using Numbers = std::vector<Real, CacheAligned<Real>>;

class ParameterSet {
 public:
  /// A new parameter of zeros. Every parameter starts on a cache line. Not while a tape of this set is in use:
  /// the blocks move.
  Parameter add(const Shape& shape);

  Index size() const { return static_cast<Index>(values_.size()); }  // with the gaps between parameters
  Real* values() { return values_.data(); }
  const Real* values() const { return values_.data(); }
  Real* grads() { return grads_.data(); }
  const Real* grads() const { return grads_.data(); }
  /// The numbers of one parameter, row by row. Throws ShapeError for a handle of another set.
  std::span<Real> value(const Parameter& p) {
    return {values() + checked(p), static_cast<std::size_t>(p.shape.numel())};
  }
  std::span<const Real> value(const Parameter& p) const {
    return {values() + checked(p), static_cast<std::size_t>(p.shape.numel())};
  }
  std::span<Real> grad(const Parameter& p) { return {grads() + checked(p), static_cast<std::size_t>(p.shape.numel())}; }
  void zero_grad();

 private:
  Index checked(const Parameter& p) const;
  Numbers values_, grads_;
};

}  // namespace tapehead::inline TAPEHEAD_REAL
