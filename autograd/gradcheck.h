// Numerical check of gradients: is what the tape says the slope of what it computed?
//
// For a function y = f(x) and a random seed s, L = <s, y> has the directional derivative <dL/dx, d> along a random
// direction d. The tape's answer a is compared with the fourth-order central difference
//   n = (8 (L(h) - L(-h)) - (L(2h) - L(-2h))) / 12 h,   error = |a - n| / max(|a|, |n|, floor)
// (Abramowitz and Stegun, 25.3.6). Meant for double; in float the differences reach about 1e-2.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "autograd/tape.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// A variable of the function: of given values, or drawn when there are none.
struct GradcheckInput {
  GradcheckInput(const Shape& s, std::vector<Real> v = {}) : shape(s), values(std::move(v)) {}
  Shape shape;
  std::vector<Real> values;
};

struct Gradcheck {
  double tolerance = sizeof(Real) == 8 ? 1e-7 : 1e-2;  // 1e-6 suits whole models
  /// The first h, in units of the tensor's root mean square (at least 1). It is halved, up to six times, until two
  /// results agree to a tenth of the tolerance. When they never do, the inputs lie on a kink and are drawn again.
  double step = sizeof(Real) == 8 ? 4e-3 : 0.1;
  int directions = 3;  // of each tensor; tensors move one at a time, so that a large gradient hides no small one
  std::uint64_t seed = 1;
  /// Maps a standard normal number to one that an input may hold (log: above 0). The identity unless given.
  std::function<double(std::size_t input, double normal)> domain;
};

struct GradcheckResult {
  bool passed = false;
  double error = 0;     // largest over all directions
  std::string message;  // of a failure: one line with all that follows
  // The element where the two differ most, of the tensor that failed:
  std::string tensor;  // "input 0", or the parameter's name
  std::string index;   // "[1, 2]"
  double analytic = 0, numeric = 0;
};

/// Records y of any shape from the inputs, which it gets as variables. Called many times: a pure function of them.
using GradcheckFunction = std::function<Tensor(Tape&, std::span<const Tensor>)>;

/// Checks dL/dx of every input. Gradients start at 1, so that a backward rule which overwrites instead of adding fails.
/// The floor is the slope whose tolerance is rounding error, 16 units in the last place of that 1 and of sum |s y| / h:
/// so a true zero passes. `name` stands in the message. Throws what f throws.
GradcheckResult gradcheck(const std::string& name, const GradcheckFunction& f, std::vector<GradcheckInput> inputs,
                          const Gradcheck& options = {});

/// Checks the gradient of each parameter in `named`, at its present value; f records the loss on a tape of
/// `parameters`. Leaves values and gradients as they were.
GradcheckResult gradcheck(const std::string& name, const std::function<Tensor(Tape&)>& f, ParameterSet& parameters,
                          std::span<const std::pair<std::string, Parameter>> named, const Gradcheck& options = {});

}  // namespace tapehead::inline TAPEHEAD_REAL
