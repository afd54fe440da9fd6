#include "autograd/checks.h"

#include "autograd/error.h"
#include "autograd/tape.h"

namespace tapehead::inline TAPEHEAD_REAL {

void fail(const Tape& tape, const char* op, const std::string& fact, const char* hint) {
  throw ShapeError(error_line(op, fact, tape.scope(), hint));
}

int axis_of(const char* op, Tensor x, int axis) {
  const int rank = x.rank();
  if (axis < -rank || axis >= rank)
    fail(x.tape(), op, "no axis " + std::to_string(axis) + " in shape " + x.shape().str(),
         "axes count from 0, or from -1 backwards");
  return axis < 0 ? axis + rank : axis;
}

Shape broadcast_shapes(const Tape& tape, const char* op, const Shape& a, const Shape& b) {
  if (const auto shape = broadcast(a, b)) return *shape;
  fail(tape, op, "shapes do not broadcast: " + a.str() + " and " + b.str(),
       "axes align at the end; sizes must be equal or 1");
}

void fail_stale(bool empty) {
  if (empty) throw ShapeError(error_line("tensor", "an empty handle was used", {}, "assign the result of an op first"));
  throw ShapeError(error_line("tensor", "a handle from an earlier pass was used", {},
                              "make tensors anew after tape.reset(), or copy values() out before"));
}

}  // namespace tapehead::inline TAPEHEAD_REAL
