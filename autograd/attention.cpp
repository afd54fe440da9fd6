// Attention in one tape entry. The passes are in kernels/attention.cpp; what they compute, made of primitive ops, is
// composed::attention at the end of this file.
#include "autograd/attention.h"

#include <cmath>
#include <limits>

#include "autograd/kernels/attention.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

Real score_factor(Index width, const Attention& options) {
  double scale = options.vector.defined() ? 1 : 1 / std::sqrt(static_cast<double>(std::max<Index>(width, 1)));
  if (options.scale) scale = double{*options.scale};
  return static_cast<Real>(scale / options.temperature);
}

// --- what does not fit is refused before anything is recorded

void check_numbers(const Tape& tape, Index width, const Attention& options) {
  const auto refuse = [&](const char* name, Real value, const char* hint) {
    fail(tape, "attention", std::string(name) + " is " + std::to_string(value), hint);
  };
  if (!(options.temperature > 0) || !std::isfinite(options.temperature))
    refuse("temperature", options.temperature, "give a finite number above 0");
  if (options.scale && !std::isfinite(*options.scale)) refuse("scale", *options.scale, "give a finite number");
  if (!std::isfinite(score_factor(width, options)))
    refuse("scale / temperature", score_factor(width, options), "choose a larger temperature");
  if (!(options.softcap >= 0) || !std::isfinite(options.softcap))
    refuse("softcap", options.softcap, "give a finite number above 0, or 0 for none");
  if (!(options.dropout >= 0 && options.dropout < 1)) refuse("dropout", options.dropout, "0 <= dropout < 1");
}

// The leading axes of x, with fewer heads than `heads` counted as all of them when they divide them.
Shape leading_axes(Tensor x, Index heads) {
  const Shape leading = x.shape().first(x.rank() - 2);
  const bool grouped = leading.rank() > 0 && leading[-1] > 1 && leading[-1] < heads && heads % leading[-1] == 0;
  return grouped ? leading.with(-1, heads) : leading;
}

// The leading axes [...] that q, k and v share by broadcasting.
Shape checked(Tape& tape, Tensor q, Tensor k, Tensor v, const Attention& options) {
  const auto shapes = [&] {  // made on failure alone: a step allocates nothing
    return "q is " + q.shape().str() + ", k is " + k.shape().str() + ", v is " + v.shape().str();
  };
  if (q.rank() < 2 || k.rank() < 2 || v.rank() < 2)
    fail(tape, "attention", shapes(), "all need two axes: positions and features");
  if (q.size(-1) != k.size(-1))
    fail(tape, "attention", "widths of queries and keys differ: " + shapes(), "q [..., T, D] needs k [..., S, D]");
  if (k.size(-2) != v.size(-2))
    fail(tape, "attention", "lengths of keys and values differ: " + shapes(), "k [..., S, D] needs v [..., S, Dv]");
  check_numbers(tape, q.size(-1), options);
  const Index heads = q.rank() > 2 ? q.size(-3) : 1;
  if (const auto of_keys = broadcast(leading_axes(k, heads), leading_axes(v, heads)))
    if (const auto of_all = broadcast(leading_axes(q, heads), *of_keys)) return *of_all;
  fail(tape, "attention", "leading axes do not broadcast: " + shapes(),
       "axes align at the end; sizes must be equal or 1, or heads of k and v a divisor of q's");
}

// Throws unless `x` broadcasts to `shape` without making it larger.
void check_fits(Tape& tape, const char* what, Tensor x, const Shape& shape) {
  if (x.defined() && broadcast(x.shape(), shape) != shape)
    fail(tape, "attention", std::string(what) + " is " + x.shape().str() + ", it has to broadcast to " + shape.str(),
         "axes align at the end; sizes must be equal or 1");
}

void check_extras(Tape& tape, const Attention& options, const Shape& leading, const Shape& weights, Index width) {
  check_fits(tape, "bias", options.bias, weights);
  check_fits(tape, "vector", options.vector, leading.inserted(-1, 1).inserted(-1, width));
  if (options.vector.defined() && (options.vector.rank() < 2 || options.vector.size(-1) != width))
    fail(tape, "attention", "vector is " + options.vector.shape().str() + ", keys have width " + std::to_string(width),
         "it is [..., 1, D]");
  const Index heads = leading.rank() > 0 ? leading[-1] : 1;
  if (options.slopes.defined() && options.slopes.shape() != Shape{heads})
    fail(tape, "attention", "slopes are " + options.slopes.shape().str() + " for " + std::to_string(heads) + " heads",
         "one slope for each head");
  if (options.slopes.defined() && weights[-2] > weights[-1])
    fail(tape, "attention",
         "slopes with " + std::to_string(weights[-2]) + " queries and " + std::to_string(weights[-1]) + " sources",
         "query t stands at position t + S - T, so T may not exceed S");
}

// --- layout

// The bias as matrices [T, S] that repeat where it broadcasts.
Tensor with_two_axes(Tensor x) { return x.rank() >= 2 ? x : reshape(x, {1, x.rank() == 1 ? x.size(0) : 1}); }
Batches repeating(Tensor x, const Shape& leading) {
  Batches in(x, leading);
  if (x.size(-2) == 1) in.row = 0;
  if (x.size(-1) == 1) in.column = 0;
  return in;
}

Index item_of_shard(const Tape& tape, const Shape& leading) {
  const Index sequences = leading.rank() > 0 ? std::max<Index>(leading[0], 1) : 1;
  return tape.random.first_sequence * (leading.numel() / sequences);
}

}  // namespace

Tensor attention(Tensor q, Tensor k, Tensor v, const Attention& options) {
  Tape& tape = q.tape();
  const Shape leading = checked(tape, q, k, v, options);
  const Index T = q.size(-2), S = k.size(-2), D = q.size(-1), Dv = v.size(-1);
  const Shape rows = leading.inserted(-1, T), shape = rows.inserted(-1, Dv);
  const Shape weights = rows.inserted(-1, S);
  check_extras(tape, options, leading, weights, D);
  const VisibleSources visible(tape, options.mask, weights);
  q = with_dense_rows(q), k = with_dense_rows(k), v = with_dense_rows(v);
  const Tensor vector = options.vector.defined() ? with_dense_rows(options.vector) : Tensor{};
  const Tensor bias = options.bias.defined() ? with_two_axes(options.bias) : Tensor{};
  const Tensor slopes = options.slopes.defined() ? contiguous(options.slopes) : Tensor{};
  const auto or_q = [q](Tensor x) { return x.defined() ? x : q; };  // stands in for what is not there

  auto* p = new (tape.scratch<AttentionProblem>(1))
      AttentionProblem{.q = q,
                       .k = k,
                       .v = v,
                       .y = tape.result("attention", shape, dense_like(q, shape), {q, k, v, or_q(bias), or_q(vector)}),
                       .softmax = tape.saved("attention.softmax", rows.inserted(-1, 2)),
                       .bias = bias,
                       .vector = vector,
                       .weights = {},
                       .in_q = {q, leading},
                       .in_k = {k, leading},
                       .in_v = {v, leading},
                       .in_y = {q, leading},
                       .in_bias = repeating(or_q(bias), leading),
                       .in_vector = {or_q(vector), leading},
                       .count = leading.numel(),
                       .T = T,
                       .S = S,
                       .D = D,
                       .Dv = Dv,
                       .factor = score_factor(D, options),
                       .softcap = options.softcap,
                       .slopes = slopes.defined() ? slopes.value() : nullptr,
                       .heads = leading.rank() > 0 ? leading[-1] : 1,
                       .keep = {},
                       .first_item = item_of_shard(tape, leading),
                       .visible = visible,
                       .kept = nullptr};
  p->in_y = Batches(p->y, leading);
  if (tape.training && options.dropout > 0) p->keep.emplace(tape, options.dropout);
  const bool simple = !p->keep && options.softcap == 0;
  if (p->y.requires_grad() && T <= kPanelRows && S <= kPanelColumns && simple) p->kept = tape.scratch(weights.numel());
  attention_forward(*p, tape);
  if (options.keep_weights || tape.keep_weights) {
    p->weights = tape.saved("attention.weights", weights, p->y.requires_grad());
    attention_weights(*p, tape, p->weights.value(), tape.saved("attention.scores", weights).value());
  }
  tape.on_backward(p->y, [p] { attention_backward(*p, p->y.tape()); });
  return p->y;
}

namespace composed {

Tensor attention(Tensor q, Tensor k, Tensor v, const Attention& options) {
  Tape& tape = q.tape();
  const Shape leading = checked(tape, q, k, v, options);
  const Index T = q.size(-2), S = k.size(-2);
  const Shape weights = leading.inserted(-1, T).inserted(-1, S);
  check_extras(tape, options, leading, weights, q.size(-1));
  const VisibleSources visible(tape, options.mask, weights);

  // Heads that share keys and values get a copy each.
  const auto all_heads = [&](Tensor x) {
    if (x.rank() < 3 || x.size(-3) == 1 || x.size(-3) == leading[-1]) return x;
    const Index group = leading[-1] / x.size(-3);
    const Shape each = x.shape().inserted(x.rank() - 2, 1);
    const Tensor zeros =
        tape.input(each.with(-3, group), std::vector<Real>(static_cast<std::size_t>(each.with(-3, group).numel())));
    return reshape(reshape(x, each) + zeros, x.shape().with(-3, leading[-1]));
  };
  k = all_heads(k), v = all_heads(v);
  const auto with_axis = [](Tensor x, int at) { return reshape(x, x.shape().inserted(at, 1)); };
  Tensor scores;  // [..., T, S]
  if (options.vector.defined())
    scores = sum(tanh(with_axis(q, q.rank() - 1) + with_axis(k, k.rank() - 2)) *
                     with_axis(options.vector, options.vector.rank() - 1),
                 -1);
  else
    scores = matmul(q, transpose(k));
  scores = scale(scores, score_factor(q.size(-1), options));
  if (options.softcap > 0) scores = scale(tanh(scale(scores, 1 / options.softcap)), options.softcap);
  if (options.bias.defined()) scores = scores + options.bias;
  if (options.slopes.defined()) {
    std::vector<Real> distances;
    for (Index t = 0; t < T; ++t)
      for (Index s = 0; s < S; ++s) distances.push_back(static_cast<Real>(std::abs(t + S - T - s)));
    const Index heads = options.slopes.numel();
    const Tensor slopes = reshape(options.slopes, leading.rank() > 0 ? Shape{heads, 1, 1} : Shape{1, 1});
    scores = scores - detach(slopes) * tape.input({T, S}, distances);
  }
  bool* flags = tape.scratch<bool>(weights.numel());
  for (Index item = 0; item < leading.numel(); ++item)
    for (Index t = 0; t < T; ++t) visible.row(item, t, flags + (item * T + t) * S);
  const Tensor zeros = tape.input(weights, std::vector<Real>(static_cast<std::size_t>(weights.numel())));
  constexpr Real kHidden = -std::numeric_limits<Real>::infinity();
  const Bools seen = tape.bools(weights, {flags, static_cast<std::size_t>(weights.numel())});
  const Tensor mixed = tapehead::softmax(masked_fill(scores + zeros, seen, kHidden));
  return matmul(dropout(mixed, options.dropout), v);
}

}  // namespace composed

}  // namespace tapehead::inline TAPEHEAD_REAL
