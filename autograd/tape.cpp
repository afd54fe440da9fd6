#include "autograd/tape.h"

#include <cstdio>

#include "autograd/error.h"
#include "autograd/kernels/runs.h"

namespace tapehead::inline TAPEHEAD_REAL {

// --- handles

namespace {
std::string describe(const Node& n) { return std::string(n.name ? n.name : n.op) + " " + n.shape.str(); }
}  // namespace

bool Tensor::contiguous() const {
  const Node& n = node();
  Index step = 1;
  for (int i = n.shape.rank() - 1; i >= 0; --i) {
    if (n.shape[i] != 1 && n.strides[static_cast<std::size_t>(i)] != step) return n.shape.numel() == 0;
    step *= n.shape[i];
  }
  return true;
}

Real* Tensor::grad() const {
  const Node& n = node();
  const Node& owner = tape_->nodes_[n.owner];
  if (!n.requires_grad)
    throw ShapeError(
        error_line("grad", describe(n) + " needs no gradient", n.scope, "make it a variable or a parameter"));
  if (owner.released)
    throw ShapeError(error_line("grad", "the gradient of " + describe(n) + " was not kept", n.scope,
                                "call keep_grad() before backward()"));
  if (!owner.grad)
    throw ShapeError(error_line("grad", describe(n) + " has no gradient", n.scope,
                                "call backward() first, on a loss that depends on it"));
  return owner.grad + n.offset;
}

Real* Tensor::grad_buffer() const { return node().requires_grad ? tape_->grad_buffer(index_) : nullptr; }

Tensor Tensor::keep_grad() const {
  tape_->nodes_[node().owner].keep_grad = true;
  return *this;
}

namespace {
std::vector<Real> gather(const Node& n, const Real* from) {
  std::vector<Real> out;
  out.reserve(static_cast<std::size_t>(n.shape.numel()));
  for_each_run(n.shape, n.strides, [&](Index offset, Index count, Index stride) {
    for (Index i = 0; i < count; ++i) out.push_back(from[offset + i * stride]);
  });
  return out;
}
}  // namespace

std::vector<Real> Tensor::values() const { return gather(node(), node().value); }
std::vector<Real> Tensor::grads() const { return gather(node(), grad()); }

Real Tensor::item() const {
  if (numel() != 1)
    throw ShapeError(error_line("item", describe(node()) + " has " + std::to_string(numel()) + " elements",
                                node().scope, "reduce it to one number first"));
  return *value();
}

// --- recording

Node& Tape::push(const char* op, const Shape& shape, const Strides& strides) {
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  const double seconds = timed ? lap() : 0;
  if (index > 0) nodes_.back().forward_seconds = seconds;
  nodes_.push_back({op, scope_, nullptr, shape, strides, nullptr, nullptr, index, 0, -1, false, false, false});
  return nodes_.back();
}

Tensor Tape::input(const Shape& shape, std::span<const Real> values) {
  check_count("input", shape, values.size());
  Tensor t = result("input", shape, {});
  std::copy(values.begin(), values.end(), t.value());
  return t;
}

Tensor Tape::variable(const Shape& shape, std::span<const Real> values) {
  Tensor t = input(shape, values);
  Node& n = nodes_.back();
  n.op = "variable";
  n.requires_grad = n.keep_grad = true;
  return t;
}

Tensor Tape::param(const Parameter& p) {
  if (!parameters_) fail(*this, "param", "this tape has no parameters", "construct it as Tape(parameter_set)");
  const std::span<Real> value = parameters_->value(p);
  Node& n = push("param", p.shape, p.shape.row_major());
  n.value = value.data();
  n.parameter = p.offset;
  n.requires_grad = n.keep_grad = recording_;
  n.grad = (gradient_block_ ? gradient_block_ : parameters_->grads()) + p.offset;
  return last();
}

Tensor Tape::external(const Shape& shape, const Strides& strides, Real* values) {
  push("external", shape, strides).value = values;
  return last();
}

void Tape::check_count(const char* op, const Shape& shape, std::size_t count) const {
  if (static_cast<Index>(count) != shape.numel())
    fail(*this, op, std::to_string(count) + " values for shape " + shape.str(), "give one value per element");
}

Tensor Tape::result(const char* op, const Shape& shape, std::initializer_list<Tensor> inputs) {
  return result(op, shape, shape.row_major(), inputs);
}

Tensor Tape::result(const char* op, const Shape& shape, const Strides& strides, std::initializer_list<Tensor> inputs) {
  bool needs = false;
  for (const Tensor& x : inputs) {
    if (&x.tape() != this) fail(*this, op, "inputs lie on different tapes", "make all of them on one tape");
    needs |= x.requires_grad();
  }
  Node& n = push(op, shape, strides);
  n.value = scratch(n.shape.numel());
  n.requires_grad = needs && recording_;
  return last();
}

Tensor Tape::view(const char* op, Tensor x, const Shape& shape, const Strides& strides, Index offset) {
  const Node base = x.node();  // a copy: push() may move the nodes
  Node& n = push(op, shape, strides);
  n.value = base.value + offset;
  n.owner = base.owner;
  n.offset = base.offset + offset;
  n.requires_grad = base.requires_grad && recording_;
  return last();
}

Tensor Tape::saved(const char* name, const Shape& shape, bool with_gradient) {
  Tensor t = result("saved", shape, {});
  nodes_.back().name = name;
  nodes_.back().requires_grad = nodes_.back().keep_grad = with_gradient;
  return t;
}

Tensor Tape::tap(const char* name, Tensor x) {
  x.node();  // throws for a handle of an earlier pass
  nodes_[x.index()].name = name;
  nodes_[x.index()].scope = scope_;
  return observer ? observer->tap(name, x) : x;
}

std::vector<Tensor> Tape::find(std::string_view name) {
  std::vector<Tensor> found;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].name && nodes_[i].name == name) found.push_back(at(i));
  return found;
}

// --- walking back

Real* Tape::grad_buffer(std::uint32_t index) {
  const Node& n = nodes_[index];
  Node& owner = nodes_[n.owner];
  if (!owner.grad) {
    owner.grad = scratch(owner.shape.numel());
    std::fill_n(owner.grad, owner.shape.numel(), Real{0});
  }
  return owner.grad + n.offset;
}

void Tape::backward(Tensor loss) {
  const Node& n = loss.node();
  if (&loss.tape() != this) fail(*this, "backward", "the loss lies on another tape", "call backward on its own tape");
  if (n.shape.numel() != 1)
    fail(*this, "backward", "the loss has shape " + n.shape.str(), "reduce it to one number, as with mean()");
  if (walked_) fail(*this, "backward", "called a second time in one pass", "call reset() and compute the loss anew");
  if (!n.requires_grad)
    fail(*this, "backward", "the loss depends on no variable or parameter", "check for NoGrad or detach()");
  walked_ = true;
  if (timed) nodes_.back().forward_seconds = lap();
  *grad_buffer(loss.index()) += 1;  // a parameter may be the loss: its gradient collects
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
    if (!nodes_[call->node].grad) continue;  // nothing that leads to the loss used it
    call->run(call->closure);
    Node& y = nodes_[call->node];
    if (timed) y.backward_seconds = lap();
    if (y.keep_grad) continue;
    arena_.recycle(y.grad, static_cast<std::size_t>(y.shape.numel()) * sizeof(Real));
    y.grad = nullptr;
    y.released = true;
  }
}

void Tape::reset() {
  nodes_.clear();
  calls_.clear();
  arena_.reset();
  scope_ = "";  // scopes' names lay in the arena
  ordinal_ = 0;
  walked_ = false;
  ++pass_;
}

Scope::Scope(Tape& tape, std::string_view name, Index index) : tape_(tape), outer_(tape.scope_), pass_(tape.pass_) {
  const std::string_view outer = outer_;
  char digits[24] = "";
  if (index >= 0) std::snprintf(digits, sizeof digits, ".%lld", static_cast<long long>(index));
  const std::size_t size = outer.size() + 1 + name.size() + std::strlen(digits) + 1;
  char* path = tape.arena_.allocate_array<char>(size);
  char* end = path;
  if (!outer.empty()) end = std::copy(outer.begin(), outer.end(), end), *end++ = '.';
  end = std::copy(name.begin(), name.end(), end);
  std::memcpy(end, digits, std::strlen(digits) + 1);
  tape.scope_ = path;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
