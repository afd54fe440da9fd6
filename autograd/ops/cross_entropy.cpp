// Cross-entropy of a softmax against class numbers, fused: neither probabilities nor their logarithms are stored.
//
//   loss_i = -sum_v q_v log p_v = log(sum_v exp z_v) - (1 - e) z_target - e / V sum_v z_v,   p = softmax(z)
//
// with q = (1 - e) one_hot(target) + e / V (label smoothing, Szegedy et al. 2016, section 7). Logits are taken relative
// to the row's largest, which keeps their digits when they are large.
#include <cmath>

#include "autograd/ops/rows.h"

namespace tapehead::inline TAPEHEAD_REAL {

using simd::all;
using simd::Packet;

namespace {

/// The number of targets that count, once every one of them is known to be a class.
Index count_targets(Tensor logits, const Ids& targets, const CrossEntropy& options) {
  const Tape& tape = logits.tape();
  const Index classes = logits.size(axis_of("cross_entropy", logits, -1));
  if (!(targets.shape() == logits.shape().without(-1)))
    fail(tape, "cross_entropy", "logits " + logits.shape().str() + " and targets " + targets.shape().str(),
         "targets have the shape of logits without the last axis");
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
    fail(tape, "cross_entropy", "label_smoothing is " + std::to_string(options.label_smoothing), "it lies in 0 .. 1");
  if (options.divisor < 0)
    fail(tape, "cross_entropy", "divisor is " + std::to_string(options.divisor), "it counts targets");
  const std::int32_t* target = targets.data();
  Index counted = 0;
  for (Index i = 0; i < targets.numel(); ++i) {
    if (target[i] == options.ignore) continue;
    if (target[i] < 0 || target[i] >= classes)
      fail(tape, "cross_entropy",
           "target " + std::to_string(target[i]) + " at " + position(targets.shape(), i) + ", but there are " +
               std::to_string(classes) + " classes",
           "targets are 0 .. V - 1, or the ignore value");
    ++counted;
  }
  return counted;
}

}  // namespace

Tensor cross_entropy(Tensor logits, Ids targets, const CrossEntropy& options) {
  const Index counted = count_targets(logits, targets, options);
  Tape& tape = logits.tape();
  logits = contiguous(logits);
  const Index classes = logits.size(-1);
  const Real smoothing = options.label_smoothing, share = smoothing / static_cast<Real>(classes);
  const Real divisor = static_cast<Real>(std::max<Index>(options.divisor ? options.divisor : counted, 1));
  const std::int32_t *target = targets.data(), ignore = options.ignore;
  Tensor y = tape.result("cross_entropy", {}, {logits});
  Real* losses = tape.saved("cross_entropy.losses", targets.shape()).value();  // 0 where ignored
  Real* largest = tape.saved("cross_entropy.largest", targets.shape()).value();
  Real* sums = tape.saved("cross_entropy.sums", targets.shape()).value();  // of exp(z_v - largest)
  for_rows(logits.shape(), 8, [=, z_all = logits.value()](Index at, Index i) {
    losses[i] = 0;
    if (target[i] == ignore) return;
    const Real* z = z_all + at;
    const Packet top = all(largest[i] = simd::max(classes, z));
    sums[i] = simd::sum_exp(classes, z, largest[i]);
    losses[i] = std::log(sums[i]) - (1 - smoothing) * (z[target[i]] - largest[i]);
    if (smoothing > 0)
      losses[i] -= share * simd::sum(
                               classes, [=](Packet z_v) { return z_v - top; }, z);
  });
  double total = 0;
  for (Index i = 0; i < targets.numel(); ++i) total += static_cast<double>(losses[i]);
  *y.value() = static_cast<Real>(total / static_cast<double>(divisor));
  // dz_v += (p_v - q_v) dy / divisor; nothing where ignored
  tape.on_backward(y, [=] {
    Real* dlogits = logits.grad_buffer();
    if (!dlogits) return;
    const Real unit = *y.grad() / divisor;
    for_rows(logits.shape(), 8, [=, z_all = logits.value()](Index at, Index i) {
      if (target[i] == ignore) return;
      const Packet top = all(largest[i]), norm = all(unit / sums[i]), uniform = all(unit * share);
      const auto rule = [=](Packet z_v) { return norm * simd::exp(z_v - top) - uniform; };
      simd::accumulate(classes, dlogits + at, rule, z_all + at);
      dlogits[at + target[i]] -= unit * (1 - smoothing);
    });
  });
  return y;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
