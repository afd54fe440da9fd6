// AdamW (Loshchilov and Hutter 2019, algorithm 2): Adam with weight decay applied to the weights, not to the gradient.
#pragma once

#include "nn/module.h"
#include "train/config.h"

namespace tapehead::inline TAPEHEAD_REAL {

class AdamW {
 public:
  /// Steps each unique parameter once, but for those that config.freeze names; decays those with two axes or more
  /// (matrices), not gains and biases. Throws ConfigError for a name of no parameter.
  AdamW(const std::vector<NamedParameter>& parameters, Index size, const TrainConfig& config);

  /// m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,  with g the gradient times `gradient_scale`;
  /// p = p (1 - lr wd) - lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps),  t = 1 at the first step.
  void step(ParameterSet& set, double learning_rate, double gradient_scale);

  /// Zeroes the gradients of frozen parameters, so that no norm counts them.
  void drop_frozen(ParameterSet& set) const;

  std::uint64_t steps() const { return steps_; }
  /// First and second moments, laid out as the set's values; for checkpoints.
  Numbers& m() { return m_; }
  Numbers& v() { return v_; }
  void set_steps(std::uint64_t steps) { steps_ = steps; }

 private:
  struct Range {
    Index begin, count;
    bool decays;
  };
  std::vector<Range> ranges_, frozen_;
  Numbers m_, v_;
  double beta1_, beta2_, eps_, weight_decay_;
  std::uint64_t steps_ = 0;
};

/// sqrt(sum g^2) over all gradients, in double: huge but finite gradients do not overflow.
double global_norm(const ParameterSet& set);

}  // namespace tapehead::inline TAPEHEAD_REAL
