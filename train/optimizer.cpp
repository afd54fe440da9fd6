#include "train/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/error.h"
#include "autograd/kernels/parallel.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {
// "blocks.0" begins "blocks.0.attn.q.weight".
bool is_or_begins(const std::string& name, const std::string& whole) {
  return whole.starts_with(name) && (whole.size() == name.size() || whole[name.size()] == '.');
}
}  // namespace

AdamW::AdamW(const std::vector<NamedParameter>& parameters, Index size, const TrainConfig& config)
    : m_(static_cast<std::size_t>(size)),
      v_(static_cast<std::size_t>(size)),
      beta1_(config.beta1),
      beta2_(config.beta2),
      eps_(config.eps),
      weight_decay_(config.weight_decay) {
  for (const std::string& name : config.freeze)
    if (std::ranges::none_of(parameters, [&](const NamedParameter& p) { return is_or_begins(name, p.name); }))
      throw ConfigError(error_line("train", "train.freeze names " + in_quotes(name) + ", which is no parameter", {},
                                   "tapehead info lists them; of tied ones the first name counts"));
  for (const NamedParameter& p : parameters) {
    const bool frozen =
        std::ranges::any_of(config.freeze, [&](const std::string& name) { return is_or_begins(name, p.name); });
    const Parameter& at = p.parameter;
    (frozen ? frozen_ : ranges_).push_back({at.offset, at.shape.numel(), at.shape.rank() == 2});
  }
}

void AdamW::drop_frozen(ParameterSet& set) const {
  for (const Range& range : frozen_) std::fill_n(set.grads() + range.begin, range.count, Real{0});
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
