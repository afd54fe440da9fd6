#include "nn/feed_forward.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {
Tensor activate(Tensor x, ActivationKind kind) {
  switch (kind) {
    case ActivationKind::relu:
      return relu(x);
    case ActivationKind::silu:
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
  return named("proj", proj, activate(named("fc", fc, x), activation));
}

}  // namespace tapehead::inline TAPEHEAD_REAL
