#include "nn/init.h"

#include <algorithm>
#include <cmath>

namespace tapehead::inline TAPEHEAD_REAL {

Parameter Initialiser::constant(const Shape& shape, Real value) {
  const Parameter p = set_.add(shape);
  std::ranges::fill(set_.value(p), value);
  return p;
}

Parameter Initialiser::normal(const Shape& shape, double std) {
  const Parameter p = set_.add(shape);
  fill_normal(p, std);
  return p;
}

Parameter Initialiser::xavier_uniform(const Shape& shape) {
  const Parameter p = set_.add(shape);
  fill_uniform(p, std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1])));
  return p;
}

Parameter Initialiser::kaiming_uniform(const Shape& shape) {
  const Parameter p = set_.add(shape);
  fill_uniform(p, std::sqrt(6.0 / static_cast<double>(shape[1])));
  return p;
}

void Initialiser::fill_normal(const Parameter& p, double std) {
  const rng::Stream stream = next_stream();
  std::uint64_t i = 0;
  for (Real& x : set_.value(p)) x = static_cast<Real>(std * stream.normal(i++));
}

void Initialiser::fill_uniform(const Parameter& p, double limit) {
  const rng::Stream stream = next_stream();
  std::uint64_t i = 0;
  for (Real& x : set_.value(p)) x = static_cast<Real>(limit * (2 * stream.uniform(i++) - 1));
}

}  // namespace tapehead::inline TAPEHEAD_REAL
