// How an op refuses what does not fit, and the checks that many share.
#pragma once

#include <string>

#include "autograd/tensor.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// Throws ShapeError "[op] fact (in the tape's scope). Hint: hint."
[[noreturn]] void fail(const Tape& tape, const char* op, const std::string& fact, const char* hint);
/// The number of an axis of x, from 0. Throws like fail() when there is none.
int axis_of(const char* op, Tensor x, int axis);
/// The shape that both broadcast to. Throws like fail(), naming both, when they do not.
Shape broadcast_shapes(const Tape& tape, const char* op, const Shape& a, const Shape& b);
/// Throws for a handle that is empty, or from an earlier pass.
[[noreturn]] void fail_stale(bool empty);

}  // namespace tapehead::inline TAPEHEAD_REAL
