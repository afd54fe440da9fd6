// Trains the module in float until it has found the numbers that made its data.
#include <cmath>
#include <cstdio>

#include "cubic.h"

bool check_gradients();

namespace {

using namespace tapehead;

bool train() {
  constexpr Real kWeight[] = {Real(0.7), Real(-0.5)}, kBias = Real(0.3);
  constexpr Index kPoints = 32;
  const rng::Stream random(1, rng::Purpose::training_data);
  std::vector<Real> inputs, targets;
  for (Index i = 0; i < kPoints; ++i) {
    const Real a = static_cast<Real>(random.normal(2 * i)), b = static_cast<Real>(random.normal(2 * i + 1));
    inputs.insert(inputs.end(), {a, b});
    targets.push_back(static_cast<Real>(std::pow(kWeight[0] * a + kWeight[1] * b + kBias, 3)));
  }

  ParameterSet set;
  const Cubic model(set, 2, 1);
  set.value(model.bias)[0] = Real(0.5);
  Tape tape(set);
  Real loss = 0;
  for (int step = 0; step < 2000; ++step) {
    tape.reset();
    set.zero_grad();
    const Tensor error = mse(model(tape.input({kPoints, 2}, inputs)), tape.input({kPoints, 1}, targets));
    tape.backward(error);
    for (Index i = 0; i < set.size(); ++i) set.values()[i] -= Real(0.02) * set.grads()[i];
    loss = error.item();
  }
  const Real* w = set.value(model.weight).data();
  std::printf("trained: loss %.1e, weight %.3f %.3f, bias %.3f\n", loss, w[0], w[1], set.value(model.bias)[0]);
  return std::abs(w[0] - kWeight[0]) < 1e-2 && std::abs(w[1] - kWeight[1]) < 1e-2;
}

}  // namespace

int main() { return check_gradients() && train() ? 0 : 1; }
