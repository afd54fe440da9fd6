// Scaled dot-product attention in one tape entry, forward and backward written by hand.
//
// Work goes by panels of kPanelRows queries against all keys they may see: the panel's scores stay in cache, and no
// [T, S] matrix is kept beyond T = kPanelRows. Backward recomputes the weights from two saved numbers a row
// (Dao et al. 2022, FlashAttention, section 3.1, without its online softmax: a panel sees whole rows).
#include "autograd/attention.h"

#include <cmath>
#include <limits>

#include "autograd/error.h"
#include "autograd/kernels/batches.h"
#include "autograd/kernels/parallel.h"
#include "autograd/kernels/simd_math.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

using simd::Packet;
constexpr Index kPanelRows = 64;

// Everything a panel needs to know; lies in the arena, shared by forward and backward.
struct Problem {
  Tensor q, k, v, y, softmax;  // softmax [..., T, 2]: each row's largest score and 1 / sum exp(score - largest)
  Batches in_q, in_k, in_v, in_y;
  Index count, T, S, D, Dv;  // count: matrices in the leading axes
  Real factor;               // scale / temperature
  VisibleSources visible;
  Real* kept;  // weights [count, T, S] for backward when T is small, else nullptr
};

// Matrix `item` of keys or values; rows that no query may see are replaced by zeros, so that what is stored there
// (padding, NaN) is never read.
ConstMatrix seen_rows(const Problem& p, const Batches& in, const Real* data, Index width, Index item, Real* scratch) {
  const ConstMatrix m = in(data, item);
  const bool* unseen = p.visible.unseen(item);
  if (!unseen) return m;
  for (Index s = 0; s < p.S; ++s)
    for (Index j = 0; j < width; ++j) scratch[s * width + j] = unseen[s] ? Real{0} : m.data[s * m.row + j];
  return {scratch, width, 1};
}

// --- one panel

// Queries begin .. begin + rows - 1 of matrix `item` against sources 0 .. columns - 1.
struct Panel {
  Index item, begin, rows, columns;
};

template <class F>
void for_each_panel(const Problem& p, Index item, F f) {
  for (Index t = 0; t < p.T; t += kPanelRows) {
    const Index rows = std::min(kPanelRows, p.T - t);
    f(Panel{item, t, rows, p.visible.end(t + rows - 1)});
  }
}

// scores[r, s] = q_r . k_s * factor, -inf where masked
void scores(const Problem& p, const Panel& panel, ConstMatrix q, ConstMatrix k, Real* to) {
  gemm(panel.rows, panel.columns, p.D, {q.data + panel.begin * q.row, q.row, q.column}, k.transposed(), {to, p.S},
       false);
  constexpr Real kHidden = -std::numeric_limits<Real>::infinity();
  for (Index r = 0; r < panel.rows; ++r) {
    Real* row = to + r * p.S;
    const Index t = panel.begin + r, end = p.visible.end(t);
    for (Index s = 0; s < end; ++s) row[s] *= p.factor;
    p.visible.for_each_hidden(panel.item, t, [row](Index s) { row[s] = kHidden; });
    std::fill(row + end, row + panel.columns, kHidden);
  }
}

// row = softmax(row), saved = {its largest element, 1 / sum_i exp(row_i - largest)}. Two numbers: their log-sum-exp
// alone, near 1e4 in float, would lose the sum behind the largest element.
void softmax_row(Index n, Real* row, Real* saved) {
  const auto [largest, total] = simd::softmax(n, row, row);
  saved[0] = largest;
  saved[1] = 1 / total;
}

// The panel's rows of scores become the weights of the forward pass, to the bit.
void weights_again(const Problem& p, const Panel& panel, const Real* saved, Real* rows) {
  saved += 2 * (panel.item * p.T + panel.begin);
  for (Index r = 0; r < panel.rows; ++r) {
    Real* row = rows + r * p.S;
    const Packet shift = simd::all(saved[2 * r]), norm = simd::all(saved[2 * r + 1]);
    simd::map(
        panel.columns, row, [=](Packet x) { return simd::exp(x - shift) * norm; }, row);
  }
}

// --- whole passes

// y = softmax(q k^T factor) v
void forward(const Problem& p, Tape& tape) {
  const Index work = p.T * p.S * (p.D + p.Dv) / 8;
  const Index size = p.S * (kPanelRows + p.D + p.Dv);
  Real* const scratch = tape.scratch(piece_count(p.count, work) * size);
  const Real *q = p.q.value(), *k = p.k.value(), *v = p.v.value();
  Real *y = p.y.value(), *saved = p.softmax.value();
  for_pieces(p.count, work, [=](Index begin, Index end, Index piece) {
    Real* room = scratch + piece * size;
    for (Index item = begin; item < end; ++item) {
      const ConstMatrix keys = seen_rows(p, p.in_k, k, p.D, item, room + p.S * kPanelRows);
      const ConstMatrix values = seen_rows(p, p.in_v, v, p.Dv, item, room + p.S * (kPanelRows + p.D));
      for_each_panel(p, item, [&](const Panel& panel) {
        Real* w = p.kept ? p.kept + (item * p.T + panel.begin) * p.S : room;
        scores(p, panel, p.in_q(q, item), keys, w);
        for (Index r = 0; r < panel.rows; ++r)
          softmax_row(panel.columns, w + r * p.S, saved + 2 * (item * p.T + panel.begin + r));
        const Matrix out{y + p.in_y.offset(item) + panel.begin * p.in_y.row, p.in_y.row};
        gemm(panel.rows, p.Dv, panel.columns, {w, p.S, 1}, values, out, false);
      });
    }
  });
}

// With W the weights: dV += W^T dY;  dW = dY V^T;  dS = W (dW - rowsum(dY Y)) factor;  dQ += dS K;  dK += dS^T Q
void backward(const Problem& p, Tape& tape) {
  // Matrices that share keys, values or queries by broadcasting add to one gradient: then in one piece.
  const bool shared =
      p.q.numel() < p.count * p.T * p.D || p.k.numel() < p.count * p.S * p.D || p.v.numel() < p.count * p.S * p.Dv;
  const Index work = p.T * p.S * (p.D + p.Dv) / 4;
  const Index size = p.S * (2 * kPanelRows + p.D + p.Dv);
  Real* const scratch = tape.scratch((shared ? 1 : piece_count(p.count, work)) * size);
  const Real *q = p.q.value(), *k = p.k.value(), *v = p.v.value(), *y = p.y.value(), *dy = p.y.grad();
  Real *dq = p.q.grad_buffer(), *dk = p.k.grad_buffer(), *dv = p.v.grad_buffer();
  const Real* saved = p.softmax.value();
  const auto run = [=](Index begin, Index end, Index piece) {
    Real* room = scratch + piece * size;
    Real* const ds = room + p.S * kPanelRows;
    for (Index item = begin; item < end; ++item) {
      const ConstMatrix keys = seen_rows(p, p.in_k, k, p.D, item, ds + p.S * kPanelRows);
      const ConstMatrix values = seen_rows(p, p.in_v, v, p.Dv, item, ds + p.S * (kPanelRows + p.D));
      for_each_panel(p, item, [&](const Panel& panel) {
        const ConstMatrix queries = p.in_q(q, item);
        Real* w = p.kept ? p.kept + (item * p.T + panel.begin) * p.S : room;
        if (!p.kept) {
          scores(p, panel, queries, keys, w);
          weights_again(p, panel, saved, w);
        }
        const Index y_row = p.in_y.row, at = p.in_y.offset(item) + panel.begin * y_row;
        const ConstMatrix dout{dy + at, y_row, 1};
        if (dv) gemm(panel.columns, p.Dv, panel.rows, {w, 1, p.S}, dout, {dv + p.in_v.offset(item), p.in_v.row}, true);
        if (!dq && !dk) return;
        gemm(panel.rows, panel.columns, p.Dv, dout, values.transposed(), {ds, p.S}, false);
        for (Index r = 0; r < panel.rows; ++r) {
          const Real mean = simd::sum(
              p.Dv, [](Packet a, Packet b) { return a * b; }, dy + at + r * y_row, y + at + r * y_row);
          Real* row = ds + r * p.S;
          const Real* weight = w + r * p.S;
          for (Index s = 0; s < panel.columns; ++s) row[s] = weight[s] * (row[s] - mean) * p.factor;
        }
        const Index q_at = p.in_q.offset(item) + panel.begin * p.in_q.row;
        if (dq) gemm(panel.rows, p.D, panel.columns, {ds, p.S, 1}, keys, {dq + q_at, p.in_q.row}, true);
        if (dk)
          gemm(panel.columns, p.D, panel.rows, {ds, 1, p.S}, {q + q_at, p.in_q.row, 1},
               {dk + p.in_k.offset(item), p.in_k.row}, true);
      });
    }
  };
  if (shared)
    run(0, p.count, 0);
  else
    for_pieces(p.count, work, run);
}

// The node "attention.weights", computed again: asking for it changes nothing else.
void save_weights(const Problem& p, Tape& tape, const Shape& shape) {
  Tensor saved = tape.saved("attention.weights", shape);
  Real* keys_room = tape.scratch(p.S * p.D);
  for (Index item = 0; item < p.count; ++item) {
    const ConstMatrix keys = seen_rows(p, p.in_k, p.k.value(), p.D, item, keys_room);
    for_each_panel(p, item, [&](const Panel& panel) {
      Real* to = saved.value() + (item * p.T + panel.begin) * p.S;
      std::fill_n(to, panel.rows * p.S, Real{0});
      scores(p, panel, p.in_q(p.q.value(), item), keys, to);
      weights_again(p, panel, p.softmax.value(), to);
    });
  }
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
  if (!(options.temperature > 0) || !std::isfinite(options.temperature))
    fail(tape, "attention", "temperature is " + std::to_string(options.temperature), "give a finite number above 0");
  if (options.scale && !std::isfinite(*options.scale))
    fail(tape, "attention", "scale is " + std::to_string(*options.scale), "give a finite number");
  const auto leading = [](Tensor x) { return x.shape().first(x.rank() - 2); };
  if (const auto of_keys = broadcast(leading(k), leading(v)))
    if (const auto of_all = broadcast(leading(q), *of_keys)) return *of_all;
  fail(tape, "attention", "leading axes do not broadcast: " + shapes(),
       "axes align at the end; sizes must be equal or 1");
}

Real score_factor(Index width, const Attention& options) {
  const double scale =
      options.scale ? double{*options.scale} : 1 / std::sqrt(static_cast<double>(std::max<Index>(width, 1)));
  return static_cast<Real>(scale / options.temperature);
}

Index stride_of(Tensor x, int axis) { return x.strides()[static_cast<std::size_t>(axis)]; }

Tensor rows_contiguous(Tensor x) { return x.size(-1) <= 1 || stride_of(x, x.rank() - 1) == 1 ? x : contiguous(x); }

// Strides of the output with its axes in the order in which q's lie in memory: heads split from a joined width
// [B, T, H, D] join again without a copy.
Strides like_queries(Tensor q, const Shape& shape) {
  const int last = shape.rank() - 1;
  if (q.shape().first(last) != shape.first(last)) return shape.row_major();
  std::array<int, kMaxRank> axes{};  // by falling stride of q
  for (int axis = 0; axis < last; ++axis) {
    int at = axis;
    for (; at > 0 && stride_of(q, axes[static_cast<std::size_t>(at - 1)]) < stride_of(q, axis); --at)
      axes[static_cast<std::size_t>(at)] = axes[static_cast<std::size_t>(at - 1)];
    axes[static_cast<std::size_t>(at)] = axis;
  }
  Strides strides{};
  strides[static_cast<std::size_t>(last)] = 1;
  Index step = shape[last];
  for (int i = last - 1; i >= 0; --i) {
    const int axis = axes[static_cast<std::size_t>(i)];
    strides[static_cast<std::size_t>(axis)] = step;
    step *= shape[axis];
  }
  return strides;
}

}  // namespace

Tensor attention(Tensor q, Tensor k, Tensor v, const Attention& options) {
  Tape& tape = q.tape();
  const Shape leading = checked(tape, q, k, v, options);
  const Index T = q.size(-2), S = k.size(-2), D = q.size(-1), Dv = v.size(-1);
  q = rows_contiguous(q);
  k = rows_contiguous(k);
  v = rows_contiguous(v);

  const Shape rows = leading.inserted(-1, T), shape = rows.inserted(-1, Dv), weights = rows.inserted(-1, S);
  auto* p = new (tape.scratch<Problem>(1)) Problem{q,
                                                   k,
                                                   v,
                                                   {},
                                                   {},
                                                   {q, leading},
                                                   {k, leading},
                                                   {v, leading},
                                                   {q, leading},
                                                   leading.numel(),
                                                   T,
                                                   S,
                                                   D,
                                                   Dv,
                                                   score_factor(D, options),
                                                   VisibleSources(tape, options.mask, weights),
                                                   nullptr};

  p->y = tape.result("attention", shape, like_queries(q, shape), {q, k, v});
  p->in_y = Batches(p->y, leading);
  p->softmax = tape.saved("attention.softmax", rows.inserted(-1, 2));
  if (p->y.requires_grad() && T <= kPanelRows) p->kept = tape.scratch(weights.numel());
  forward(*p, tape);
  if (options.keep_weights || tape.keep_weights) save_weights(*p, tape, weights);

  tape.on_backward(p->y, [p] { backward(*p, p->y.tape()); });
  return p->y;
}

namespace composed {

Tensor attention(Tensor q, Tensor k, Tensor v, const Attention& options) {
  Tape& tape = q.tape();
  checked(tape, q, k, v, options);
  constexpr Real kHidden = -std::numeric_limits<Real>::infinity();
  Tensor scores = scale(matmul(q, transpose(k)), score_factor(q.size(-1), options));  // [..., T, S]
  const Index T = scores.size(-2), S = scores.size(-1);
  VisibleSources(tape, options.mask, scores.shape());  // refuses what the fused op refuses
  if (options.mask.causal) {
    bool* visible = tape.scratch<bool>(T * S);
    for (Index t = 0; t < T; ++t)
      for (Index s = 0; s < S; ++s) visible[t * S + s] = s <= t + S - T;
    scores = masked_fill(scores, tape.bools({T, S}, {visible, static_cast<std::size_t>(T * S)}), kHidden);
  }
  if (options.mask.allowed.defined()) scores = masked_fill(scores, options.mask.allowed, kHidden);
  return matmul(tapehead::softmax(scores), v);
}

}  // namespace composed

}  // namespace tapehead::inline TAPEHEAD_REAL
