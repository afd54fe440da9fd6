#include "train/optimizer.h"

#include <array>
#include <cmath>

#include "autograd/kernels/parallel.h"

namespace tapehead::inline TAPEHEAD_REAL {

AdamW::AdamW(const std::vector<NamedParameter>& parameters, Index size, const TrainConfig& config)
    : m_(static_cast<std::size_t>(size)),
      v_(static_cast<std::size_t>(size)),
      beta1_(config.beta1),
      beta2_(config.beta2),
      eps_(config.eps),
      weight_decay_(config.weight_decay) {
  for (const NamedParameter& p : parameters)
    ranges_.push_back({p.parameter.offset, p.parameter.shape.numel(), p.parameter.shape.rank() >= 2});
}

void AdamW::step(ParameterSet& set, double learning_rate, double gradient_scale) {
  ++steps_;
  const auto t = static_cast<double>(steps_);
  const Real b1 = static_cast<Real>(beta1_), b2 = static_cast<Real>(beta2_), eps = static_cast<Real>(eps_);
  const Real one_minus_b1 = static_cast<Real>(1 - beta1_), one_minus_b2 = static_cast<Real>(1 - beta2_);
  const Real step_size = static_cast<Real>(learning_rate / (1 - std::pow(beta1_, t)));
  const Real v_scale = static_cast<Real>(1 / (1 - std::pow(beta2_, t)));
  const Real g_scale = static_cast<Real>(gradient_scale);
  for (const Range& range : ranges_) {
    const Real keep = range.decays ? static_cast<Real>(1 - learning_rate * weight_decay_) : Real{1};
    Real* const p = set.values() + range.begin;
    const Real* const g = set.grads() + range.begin;
    Real *const m = m_.data() + range.begin, *const v = v_.data() + range.begin;
    for_pieces(range.count, 4, [=](Index begin, Index end, Index) {
      for (Index i = begin; i < end; ++i) {
        const Real gradient = g[i] * g_scale;
        m[i] = b1 * m[i] + one_minus_b1 * gradient;
        v[i] = b2 * v[i] + one_minus_b2 * gradient * gradient;
        p[i] = p[i] * keep - step_size * m[i] / (std::sqrt(v[i] * v_scale) + eps);
      }
    });
  }
}

double global_norm(const ParameterSet& set) {
  std::array<double, kMaxPieces> sums{};
  const Real* g = set.grads();
  for_pieces(set.size(), 1, [&](Index begin, Index end, Index piece) {
    std::array<double, 8> lanes{};  // eight sums side by side: a single one would wait for each addition
    Index i = begin;
    for (; i + 8 <= end; i += 8)
      for (Index lane = 0; lane < 8; ++lane)
        lanes[static_cast<std::size_t>(lane)] += double{g[i + lane]} * double{g[i + lane]};
    for (; i < end; ++i) lanes[0] += double{g[i]} * double{g[i]};
    for (double lane : lanes) sums[static_cast<std::size_t>(piece)] += lane;
  });
  double total = 0;
  for (double sum : sums) total += sum;
  return std::sqrt(total);
}

}  // namespace tapehead::inline TAPEHEAD_REAL
