#include "nn/feed_forward.h"

namespace tapehead::inline TAPEHEAD_REAL {

FeedForward FeedForward::make(Initialiser& init, const Options& o) {
  FeedForward f{Linear::make(init, o.width, o.inner, o.bias, o.std),
                Linear::make(init, o.inner, o.width, o.bias, o.output_std), std::nullopt, o.activation};
  if (o.activation == ActivationKind::swiglu) f.gate = Linear::make(init, o.width, o.inner, o.bias, o.std);
  return f;
}

namespace {
Tensor activate(Tensor x, ActivationKind kind) {
  switch (kind) {
    case ActivationKind::relu:
      return relu(x);
    case ActivationKind::silu:
    case ActivationKind::swiglu:
      return silu(x);
    case ActivationKind::gelu:
      break;
  }
  return gelu(x);
}
}  // namespace

Tensor FeedForward::operator()(Tensor x) const {
  Tape& tape = x.tape();
  const auto named = [&](const char* name, const Linear& layer, Tensor input) {
    Scope scope(tape, name);
    return layer(input);
  };
  const Tensor inner = named("fc", fc, x);
  const Tensor active = gate ? activate(named("gate", *gate, x), activation) * inner : activate(inner, activation);
  return named("proj", proj, active);
}

}  // namespace tapehead::inline TAPEHEAD_REAL
