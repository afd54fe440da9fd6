// Tensor: a handle to one node of a tape. Ids and Bools: integers and flags that lie in a tape's arena.
//
// A handle is (tape, index, pass): 16 bytes, trivially copyable, so a backward closure captures it by value. Every
// use checks the pass: after tape.reset() an old handle throws instead of reading memory that now holds something else.
#pragma once

#include <vector>

#include "autograd/real.h"
#include "autograd/shape.h"

namespace tapehead::inline TAPEHEAD_REAL {

class Tape;
struct Node;

class Tensor {
 public:
  Tensor() = default;
  Tensor(Tape* tape, std::uint32_t index, std::uint32_t pass) : tape_(tape), index_(index), pass_(pass) {}

  bool defined() const { return tape_ != nullptr; }
  Tape& tape() const;
  const Node& node() const;
  std::uint32_t index() const { return index_; }

  Shape shape() const;  // a copy, as strides(): the next op may move the nodes
  Index size(int axis) const { return shape()[axis]; }
  Index numel() const { return shape().numel(); }
  int rank() const { return shape().rank(); }
  Strides strides() const;
  bool contiguous() const;  // lies in memory row by row without gaps
  bool requires_grad() const;

  /// First element. Take it once, before a loop: each call checks the handle.
  Real* value() const;
  /// First element of dL/dx, after backward(). Throws when there is none or it was not kept.
  Real* grad() const;
  /// For a backward rule: where to add dL/dx, zeroed at first use; nullptr when x needs no gradient.
  Real* grad_buffer() const;
  /// Asks backward() to keep dL/dx of an intermediate result. Returns *this.
  Tensor keep_grad() const;

  /// Copies in row-major order, whatever the strides.
  std::vector<Real> values() const;
  std::vector<Real> grads() const;
  /// The number of a tensor with one element.
  Real item() const;

 private:
  Tape* tape_ = nullptr;
  std::uint32_t index_ = 0, pass_ = 0;
};

/// Constants of another type than Real in a tape's arena. Same lifetime as a Tensor.
template <class T>
class Constants {
 public:
  Constants() = default;
  Constants(Tape* tape, std::uint32_t pass, const T* data, const Shape& shape)
      : tape_(tape), data_(data), shape_(shape), pass_(pass) {}
  bool defined() const { return tape_ != nullptr; }
  const T* data() const { return tape(), data_; }
  const Shape& shape() const { return shape_; }
  Index numel() const { return shape_.numel(); }
  Tape& tape() const;

 private:
  Tape* tape_ = nullptr;
  const T* data_ = nullptr;
  Shape shape_;
  std::uint32_t pass_ = 0;
};
using Ids = Constants<std::int32_t>;  // tokens, classes
using Bools = Constants<bool>;        // masks: true = visible, or chosen

}  // namespace tapehead::inline TAPEHEAD_REAL
