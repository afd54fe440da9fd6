// The gradient tape: a record of what was computed, and how to walk it backwards.
//
// Every op appends a node (its result) and, when a gradient may be asked for, a backward call: a closure that adds
// to the gradients of the op's inputs. Creation order is a topological order, so backward() runs the calls from the
// last to the first, each once, after all users of its result (reverse accumulation, Griewank and Walther 2008, ch. 3).
//
// Views (reshape, permute, slice) are nodes that share the memory of another node, values and gradients alike, with
// strides of their own. They have no backward call: what is added to a view's gradient is added to its owner's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/arena.h"
#include "autograd/checks.h"
#include "autograd/parameter.h"
#include "autograd/tap.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct Node {
  const char* op;     // "linear"
  const char* scope;  // "blocks.0.attn", "" outside any scope
  const char* name;   // what an op saved or a caller named: "attention.weights"; else nullptr
  Shape shape;
  Strides strides;
  Real* value;
  Real* grad;           // of an owner: nullptr until the first user's backward call adds to it
  std::uint32_t owner;  // the node that owns the memory: this one, unless it is a view
  Index offset;         // of a view: elements from the owner's first
  Index parameter;      // offset in the ParameterSet, or -1
  bool requires_grad;
  bool keep_grad;
  bool released;                                     // the gradient was used and its memory given back
  double forward_seconds = 0, backward_seconds = 0;  // when the tape is timed
};

/// What decides random numbers on a tape, beside the op's ordinal and the element's index.
struct RandomContext {
  std::uint64_t seed = 1;
  std::uint32_t step = 0;
  Index first_sequence = 0;  // of this shard within the whole batch, so that shards draw what one tape would
};

class Tape {
 public:
  Tape() = default;
  explicit Tape(ParameterSet& parameters) : parameters_(&parameters) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // --- leaves
  /// A constant: no gradient. Values are copied, row by row.
  Tensor input(const Shape& shape, std::span<const Real> values);
  Tensor input(const Shape& shape, std::initializer_list<Real> v) {
    return input(shape, std::span(v.begin(), v.size()));
  }
  Tensor scalar(Real value) { return input({}, {value}); }
  /// A leaf whose gradient is kept.
  Tensor variable(const Shape& shape, std::span<const Real> values);
  Tensor variable(const Shape& shape, std::initializer_list<Real> v) {
    return variable(shape, std::span(v.begin(), v.size()));
  }
  /// The value of a parameter of this tape's set, shared, not copied; its gradient adds to the set's block.
  Tensor param(const Parameter& p);
  /// A constant in memory of the caller's, which stays until the pass ends.
  Tensor external(const Shape& shape, const Strides& strides, Real* values);
  Ids ids(const Shape& shape, std::span<const std::int32_t> values) { return constants("ids", shape, values); }
  Bools bools(const Shape& shape, std::span<const bool> values) { return constants("bools", shape, values); }

  // --- for ops
  /// A new node with uninitialised values, which requires a gradient when one of `inputs` does and recording is on.
  Tensor result(const char* op, const Shape& shape, std::initializer_list<Tensor> inputs);
  /// The same with strides other than row-major; they must fill numel() elements without gaps.
  Tensor result(const char* op, const Shape& shape, const Strides& strides, std::initializer_list<Tensor> inputs);
  /// A node that shares x's memory: `offset` elements on, with its own shape and strides.
  Tensor view(const char* op, Tensor x, const Shape& shape, const Strides& strides, Index offset);
  /// A node that an op keeps for its backward call or for inspection, found again by its name; with a gradient when
  /// the op's own backward call fills it.
  Tensor saved(const char* name, const Shape& shape, bool with_gradient = false);
  /// Names x within the present scope, and gives it back or what the tape's observer puts in its place: where a model
  /// can be looked into and changed. Names are those of TransformerLens: "hook_z" within "blocks.0.attn".
  Tensor tap(const char* name, Tensor x);
  /// Registers y's backward call: f(), run once dL/dy is complete. Nothing is recorded when y needs no gradient.
  template <class F>
  void on_backward(Tensor y, F f) {
    static_assert(std::is_trivially_destructible_v<F> && std::is_trivially_copyable_v<F>,
                  "a backward closure captures only handles, pointers and numbers: the arena runs no destructors");
    if (!y.requires_grad()) return;
    auto* closure = new (arena_.allocate(sizeof(F))) F(std::move(f));
    calls_.push_back({[](void* c) { (*static_cast<F*>(c))(); }, closure, y.index()});
  }
  /// Uninitialised memory until reset().
  template <class T = Real>
  T* scratch(Index count) {
    return arena_.allocate_array<T>(static_cast<std::size_t>(count));
  }
  Arena& arena() { return arena_; }
  std::uint32_t next_ordinal() { return ordinal_++; }  // of this pass's random ops

  // --- gradients
  /// Adds d(loss)/dx to every x that requires a gradient. Once per pass; `loss` has one element.
  void backward(Tensor loss);
  /// Forgets all nodes and keeps the memory. Handles from before throw.
  void reset();
  /// Where param() gradients go: the set's own block, or (a shard of a parallel step) another of the same size.
  void set_gradient_block(Real* block) { gradient_block_ = block; }

  // --- state of a pass
  bool recording() const { return recording_; }
  bool training = false;      // dropout acts
  bool keep_weights = false;  // attention fills its node "attention.weights"
  bool timed = false;         // nodes get the time from their making to the next one's, and of their backward call
  RandomContext random;
  const TapObserver* observer = nullptr;

  // --- looking
  std::size_t size() const { return nodes_.size(); }
  Tensor at(std::size_t index) { return {this, static_cast<std::uint32_t>(index), pass_}; }
  /// Every node saved or named `name`, in order of creation.
  std::vector<Tensor> find(std::string_view name);
  const char* scope() const { return scope_; }
  ParameterSet* parameters() const { return parameters_; }

 private:
  friend class Tensor;
  template <class T>
  friend class Constants;
  friend class Scope;
  friend class NoGrad;
  struct Call {
    void (*run)(void*);
    void* closure;
    std::uint32_t node;
  };
  Node& push(const char* op, const Shape& shape, const Strides& strides);
  double lap() {  // seconds since the last call
    const auto start = std::exchange(lap_start_, std::chrono::steady_clock::now());
    return std::chrono::duration<double>(lap_start_ - start).count();
  }
  Tensor last() { return at(nodes_.size() - 1); }
  Real* grad_buffer(std::uint32_t index);
  void check_count(const char* op, const Shape& shape, std::size_t count) const;
  template <class T>
  Constants<T> constants(const char* op, const Shape& shape, std::span<const T> values) {
    check_count(op, shape, values.size());
    T* copy = arena_.allocate_array<T>(values.size());
    std::copy(values.begin(), values.end(), copy);
    return {this, pass_, copy, shape};
  }

  Arena arena_;
  std::vector<Node> nodes_;
  std::vector<Call> calls_;
  ParameterSet* parameters_ = nullptr;
  Real* gradient_block_ = nullptr;
  const char* scope_ = "";
  std::uint32_t pass_ = 1, ordinal_ = 0;
  std::chrono::steady_clock::time_point lap_start_;
  bool recording_ = true, walked_ = false;
};

/// Names a stretch of code: nodes made while it lives carry the path "outer.inner" or "outer.inner.index".
class Scope {
 public:
  Scope(Tape& tape, std::string_view name, Index index = -1);
  ~Scope() {
    if (tape_.pass_ == pass_) tape_.scope_ = outer_;  // reset() took the outer name's memory
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Tape& tape_;
  const char* outer_;
  std::uint32_t pass_;
};

/// While it lives, ops record values but no backward calls.
class NoGrad {
 public:
  explicit NoGrad(Tape& tape) : tape_(tape), outer_(tape.recording_) { tape.recording_ = false; }
  ~NoGrad() { tape_.recording_ = outer_; }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  Tape& tape_;
  bool outer_;
};

template <class T>
Tape& Constants<T>::tape() const {
  if (!tape_ || pass_ != tape_->pass_) fail_stale(!tape_);
  return *tape_;
}
inline const Node& Tensor::node() const {
  if (!tape_ || pass_ != tape_->pass_) fail_stale(!tape_);
  return tape_->nodes_[index_];
}
inline Tape& Tensor::tape() const { return node(), *tape_; }
inline Shape Tensor::shape() const { return node().shape; }
inline Strides Tensor::strides() const { return node().strides; }
inline bool Tensor::requires_grad() const { return node().requires_grad; }
inline Real* Tensor::value() const { return node().value; }

}  // namespace tapehead::inline TAPEHEAD_REAL
