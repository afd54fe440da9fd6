// Initial values of parameters. Each parameter draws from a stream of its own, numbered in order of creation.
#pragma once

#include "autograd/parameter.h"
#include "autograd/rng.h"

namespace tapehead::inline TAPEHEAD_REAL {

class Initialiser {
 public:
  Initialiser(ParameterSet& set, std::uint64_t seed) : set_(set), seed_(seed) {}

  Parameter zeros(const Shape& shape) { return constant(shape, 0); }
  Parameter ones(const Shape& shape) { return constant(shape, 1); }
  Parameter constant(const Shape& shape, Real value);
  /// N(0, std^2), as GPT-2 with std = 0.02 (Radford et al. 2019, section 2.3).
  Parameter normal(const Shape& shape, double std);
  /// U(-a, a), a = sqrt(6 / (in + out)) (Glorot and Bengio 2010, eq. 16), for a weight [out, in].
  Parameter xavier_uniform(const Shape& shape);
  /// U(-a, a), a = sqrt(6 / in) (He et al. 2015, eq. 10 as a uniform), for a weight [out, in] before a ReLU.
  Parameter kaiming_uniform(const Shape& shape);

  /// The same draws for numbers that exist: rows of a larger parameter.
  void fill_normal(const Parameter& p, double std);
  ParameterSet& set() { return set_; }

 private:
  void fill_uniform(const Parameter& p, double limit);
  rng::Stream next_stream() { return {seed_, rng::Purpose::init, 0, ordinal_++}; }

  ParameterSet& set_;
  std::uint64_t seed_;
  std::uint32_t ordinal_ = 0;
};

}  // namespace tapehead::inline TAPEHEAD_REAL
