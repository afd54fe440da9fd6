// Numerical check of gradients, in double precision (compiled for f64 alone is useful; f32 cannot reach the bounds).
//
// For a function y = f(x) and a random seed s (asymmetric: a rule that is right only for equal seeds fails), L = <s, y>
// has the directional derivative <dL/dx, d> along a random direction d. The tape's answer a is compared with the
// fourth-order central difference n = (8 (L(h) - L(-h)) - (L(2h) - L(-2h))) / 12 h; the error is |a - n| / max(|a|,
// |n|).
#pragma once

#include <functional>
#include <string>

#include "autograd/tape.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct GradcheckInput {
  Shape shape;
  std::vector<Real> values;
};

struct Gradcheck {
  double tolerance = 1e-7;  // 1e-6 suits whole models
  double step = 1e-3;       // h, relative to inputs of size one
  int directions = 4;
  std::uint64_t seed = 1;
  /// Says whether inputs lie too near a kink for differences to mean anything; they are drawn again by `draw`.
  std::function<bool(const std::vector<GradcheckInput>&)> near_kink;
  std::function<void(std::vector<GradcheckInput>&, std::uint64_t attempt)> draw;
};

struct GradcheckResult {
  bool passed = false;
  double error = 0;     // largest over the directions
  std::string message;  // on failure: op, tensor, index, analytic and numeric value of the worst element
};

/// f records y from the inputs, which it gets as variables.
using GradcheckFunction = std::function<Tensor(Tape&, std::span<const Tensor>)>;
GradcheckResult gradcheck(const std::string& name, const GradcheckFunction& f, std::vector<GradcheckInput> inputs,
                          const Gradcheck& options = {});

/// Over all numbers of a parameter set; f records the loss. `names` gives each parameter a name for messages.
GradcheckResult gradcheck(const std::string& name, const std::function<Tensor(Tape&)>& f, ParameterSet& parameters,
                          std::span<const std::pair<std::string, Parameter>> names, const Gradcheck& options = {});

}  // namespace tapehead::inline TAPEHEAD_REAL
