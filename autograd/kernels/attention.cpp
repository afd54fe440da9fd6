// Work goes by panels of kPanelRows queries against the sources they may see, kPanelColumns at a time: a block of
// scores stays in cache, and no [T, S] matrix is kept beyond one block. Of longer rows the softmax is computed as the
// blocks pass by, and backward recomputes the weights from two saved numbers a row (Dao et al. 2022, FlashAttention,
// section 3.1).
#include "autograd/kernels/attention.h"

#include <array>
#include <cmath>
#include <limits>

#include "autograd/kernels/parallel.h"
#include "autograd/kernels/simd_math.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

using simd::all;
using simd::Packet;
using Problem = AttentionProblem;

// Queries begin .. begin + rows - 1 of matrix `item` against sources first .. first + columns - 1.
struct Panel {
  Index item, begin, rows, first, columns;
};

template <class F>
void for_each_panel(const Problem& p, Index item, F f) {
  for (Index t = 0; t < p.T; t += kPanelRows) {
    const Index rows = std::min(kPanelRows, p.T - t), first = p.visible.begin(t);
    f(Panel{item, t, rows, first, p.visible.end(item, t + rows - 1) - first});
  }
}

// The same queries against kPanelColumns sources at a time.
template <class F>
void for_each_block(const Panel& panel, F f) {
  for (Index at = 0; at < panel.columns; at += kPanelColumns)
    f(Panel{panel.item, panel.begin, panel.rows, panel.first + at, std::min(kPanelColumns, panel.columns - at)});
}

ConstMatrix rows_from(ConstMatrix m, Index row) { return {m.data + row * m.row, m.row, m.column}; }

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

// One worker's memory: blocks whose rows are `step` numbers apart. Not a power of two: such rows share few sets of the
// first cache, and products lose a third of their speed.
struct Room {
  Index step;
  Real *weights, *ds, *cap_slopes, *keys, *values, *row;

  static Index step_of(const Problem& p) { return p.kept ? p.S : std::min(p.S, kPanelColumns) + 16; }
  static Index size(const Problem& p, Index blocks) {
    const Index all_blocks = blocks + (p.softcap > 0 ? 1 : 0);
    return all_blocks * kPanelRows * step_of(p) + (p.visible.unseen(0) ? p.S * (p.D + p.Dv) : 0) + p.D;
  }
  Room(const Problem& p, Index blocks, Real* memory) : step(step_of(p)), weights(memory) {
    const Index block = kPanelRows * step;
    ds = memory + (blocks - 1) * block;  // with one block: the same
    cap_slopes = memory + blocks * block;
    keys = cap_slopes + (p.softcap > 0 ? block : 0);
    values = keys + (p.visible.unseen(0) ? p.S * p.D : 0);
    row = values + (p.visible.unseen(0) ? p.S * p.Dv : 0);
  }
  // Where a block's weights lie.
  Real* weights_of(const Problem& p, const Panel& block) const {
    return p.kept ? p.kept + p.row(block.item, block.begin) * p.S + block.first : weights;
  }
};

// --- scores

// to[r, s] = q_r . k_s, or vector . tanh(q_r + k_s) (Bahdanau et al. 2015, section 3.1)
void compare(const Problem& p, const Panel& panel, ConstMatrix q, ConstMatrix k, Matrix to) {
  if (!p.vector.defined()) {
    gemm(panel.rows, panel.columns, p.D, q, k.transposed(), to, false);
    return;
  }
  const Real* vector = p.in_vector(p.vector.value(), panel.item).data;
  for (Index r = 0; r < panel.rows; ++r)
    for (Index s = 0; s < panel.columns; ++s)
      to.data[r * to.row + s] = simd::sum(
          p.D, [](Packet q_i, Packet k_i, Packet v_i) { return v_i * simd::tanh(q_i + k_i); }, q.data + r * q.row,
          k.data + s * k.row, vector);
}

// One row of what compare() gave becomes scores: scaled, capped, biased; -infinity where masked. Where there is a cap,
// `cap_slope` takes its derivative.
void finish_row(const Problem& p, const Panel& panel, Index r, Real* row, Real* cap_slope) {
  const Index t = panel.begin + r, n = panel.columns;
  const Packet factor = all(p.factor);
  if (p.softcap > 0) {
    const Packet cap = all(p.softcap), inner = all(p.factor / p.softcap);
    simd::map(
        n, row, [=](Packet x) { return simd::tanh(x * inner); }, row);
    simd::map(
        n, cap_slope, [](Packet x) { return all(1) - x * x; }, row);
    simd::map(
        n, row, [=](Packet x) { return x * cap; }, row);
  } else {
    simd::map(
        n, row, [=](Packet x) { return x * factor; }, row);
  }
  if (p.bias.defined()) {
    const ConstMatrix bias = rows_from(p.in_bias(p.bias.value(), panel.item), t);
    for (Index s = 0; s < n; ++s) row[s] += bias.data[(panel.first + s) * bias.column];
  }
  if (p.slopes) {
    const Real slope = p.slopes[panel.item % p.heads];
    const Index position = t + p.S - p.T - panel.first;
    for (Index s = 0; s < n; ++s) row[s] -= slope * static_cast<Real>(std::abs(position - s));
  }
  p.visible.for_each_hidden(panel.item, t, panel.first, panel.first + n,
                            [=](Index source) { row[source - panel.first] = -std::numeric_limits<Real>::infinity(); });
}

void scores(const Problem& p, const Panel& panel, ConstMatrix q, ConstMatrix k, const Room& room, Real* to) {
  compare(p, panel, rows_from(q, panel.begin), rows_from(k, panel.first), {to, room.step});
  for (Index r = 0; r < panel.rows; ++r) finish_row(p, panel, r, to + r * room.step, room.cap_slopes + r * room.step);
}

// What is saved of a row: its largest element and 1 / sum_i exp(row_i - largest). Two numbers: their log-sum-exp alone,
// near 1e4 in float, would lose the sum behind the largest element.
struct SavedRow {
  Real largest, norm;
};

// row = softmax(row)
SavedRow softmax_row(Index n, Real* row) {
  const auto [largest, total] = simd::softmax(n, row, row);
  return {largest, 1 / total};
}

// row = exp(row - largest) for the next elements of a longer row, of which `seen` has the largest element and the sum
// so far. Returns by what the earlier ones have to be multiplied (Milakov and Gimelshein 2018, online softmax).
Real exp_of_next(Index n, Real* row, simd::RowSum& seen) {
  const Real largest = std::max(seen.largest, simd::max(n, row));
  // While all is masked any shift will do: exp(-infinity) = 0.
  const Real shift = largest == -std::numeric_limits<Real>::infinity() ? 0 : largest;
  const Real shrink = std::exp(seen.largest - shift);
  const Packet packet_shift = all(shift);
  simd::map(
      n, row, [=](Packet x) { return simd::exp(x - packet_shift); }, row);
  seen = {largest, seen.total * shrink + simd::total(n, row)};
  return shrink;
}

SavedRow* saved_rows(const Problem& p, const Panel& panel) {
  return reinterpret_cast<SavedRow*>(p.softmax.value()) + p.row(panel.item, panel.begin);
}

// The panel's rows of scores become the weights of the forward pass.
void weights_again(const Problem& p, const Panel& panel, Index step, Real* rows) {
  const SavedRow* saved = saved_rows(p, panel);
  for (Index r = 0; r < panel.rows; ++r) {
    Real* row = rows + r * step;
    const Packet shift = all(saved[r].largest), norm = all(saved[r].norm);
    simd::map(
        panel.columns, row, [=](Packet x) { return simd::exp(x - shift) * norm; }, row);
  }
}

// to = dropout of the panel's rows; the same elements each time
void drop(const Problem& p, const Panel& panel, Index step, const Real* rows, Real* to) {
  for (Index r = 0; r < panel.rows; ++r) {
    const Index element = ((p.first_item + panel.item) * p.T + panel.begin + r) * p.S + panel.first;
    p.keep->apply(static_cast<std::uint64_t>(element), panel.columns, rows + r * step, to + r * step);
  }
}

// --- forward

void scale_row(Index n, Real factor, Real* row) {
  const Packet f = all(factor);
  simd::map(
      n, row, [=](Packet x) { return x * f; }, row);
}

void forward_panel(const Problem& p, const Panel& panel, ConstMatrix keys, ConstMatrix values, const Room& room) {
  const ConstMatrix queries = p.in_q(p.q.value(), panel.item);
  const Matrix out{p.y.value() + p.in_y.offset(panel.item) + panel.begin * p.in_y.row, p.in_y.row};
  SavedRow* saved = saved_rows(p, panel);
  const bool whole = panel.columns <= kPanelColumns;
  std::array<simd::RowSum, kPanelRows> seen;
  seen.fill({-std::numeric_limits<Real>::infinity(), 0});
  for_each_block(panel, [&](const Panel& block) {
    Real* w = room.weights_of(p, block);
    scores(p, block, queries, keys, room, w);
    const bool first = block.first == panel.first;
    for (Index r = 0; r < panel.rows; ++r) {
      Real *row = w + r * room.step, *y = out.data + r * out.row;
      if (whole) {
        saved[r] = softmax_row(block.columns, row);
        continue;
      }
      const Real shrink = exp_of_next(block.columns, row, seen[static_cast<std::size_t>(r)]);
      if (!first && shrink != 1) scale_row(p.Dv, shrink, y);
    }
    if (p.keep) drop(p, block, room.step, w, w);
    gemm(panel.rows, p.Dv, block.columns, {w, room.step, 1}, rows_from(values, block.first), out, !first);
  });
  if (whole) return;
  for (Index r = 0; r < panel.rows; ++r) {
    const simd::RowSum& sum = seen[static_cast<std::size_t>(r)];
    saved[r] = {sum.largest, 1 / sum.total};
    scale_row(p.Dv, saved[r].norm, out.data + r * out.row);
  }
}

// --- backward

// What backward adds to; nullptr where no gradient is needed.
struct Gradients {
  Real *q, *k, *v, *bias, *vector, *weights;
};

// dbias += dS, summed along the axes that the bias repeats
void add_to_bias(const Problem& p, const Panel& panel, ConstMatrix ds, Real* dbias) {
  const Batches& in = p.in_bias;
  for (Index r = 0; r < panel.rows; ++r)
    for (Index s = 0; s < panel.columns; ++s)
      dbias[in.offset(panel.item) + (panel.begin + r) * in.row + (panel.first + s) * in.column] +=
          ds.data[r * ds.row + s];
}

// With u = tanh(q_r + k_s):  dvector += dS u;  dq_r, dk_s += dS vector (1 - u^2)
void add_to_sums(const Problem& p, const Panel& panel, ConstMatrix q, ConstMatrix k, ConstMatrix ds, Real* dq, Real* dk,
                 Real* dvector, Real* slope) {
  const Real* vector = p.in_vector(p.vector.value(), panel.item).data;
  for (Index r = 0; r < panel.rows; ++r)
    for (Index s = 0; s < panel.columns; ++s) {
      const Real *q_r = q.data + r * q.row, *k_s = k.data + s * k.row;
      const Packet d = all(ds.data[r * ds.row + s]);
      const auto along = [=](Packet a, Packet b, Packet v) {
        const Packet u = simd::tanh(a + b);
        return d * v * (all(1) - u * u);
      };
      const auto same = [](Packet x) { return x; };
      simd::map(p.D, slope, along, q_r, k_s, vector);
      if (dq) simd::accumulate(p.D, dq + r * p.in_q.row, same, slope);
      if (dk) simd::accumulate(p.D, dk + s * p.in_k.row, same, slope);
      if (dvector)
        simd::accumulate(
            p.D, dvector, [=](Packet a, Packet b) { return d * simd::tanh(a + b); }, q_r, k_s);
    }
}

// With W the weights:  dV += W^T dY;  dW = dY V^T;  dS = W (dW - rowsum(dY Y));  then back through cap and factor.
void backward_block(const Problem& p, const Panel& panel, ConstMatrix keys, ConstMatrix values, const Gradients& to,
                    const Room& room) {
  const ConstMatrix queries = p.in_q(p.q.value(), panel.item);
  Real *const ds = room.ds, *const w = room.weights_of(p, panel);
  const Index step = room.step;
  if (!p.kept) {
    scores(p, panel, queries, keys, room, w);
    weights_again(p, panel, step, w);
  }
  const Index y_row = p.in_y.row, y_at = p.in_y.offset(panel.item) + panel.begin * y_row;
  const Real *y = p.y.value() + y_at, *dy = p.y.grad() + y_at;
  if (to.v) {
    const Real* used = p.keep ? ds : w;
    if (p.keep) drop(p, panel, step, w, ds);
    Real* dv = to.v + p.in_v.offset(panel.item) + panel.first * p.in_v.row;
    gemm(panel.columns, p.Dv, panel.rows, {used, 1, step}, {dy, y_row, 1}, {dv, p.in_v.row}, true);
  }
  if (!to.q && !to.k && !to.bias && !to.vector && !to.weights) return;
  gemm(panel.rows, panel.columns, p.Dv, {dy, y_row, 1}, rows_from(values, panel.first).transposed(), {ds, step}, false);
  if (p.keep) drop(p, panel, step, ds, ds);
  if (to.weights)
    for (Index r = 0; r < panel.rows; ++r) {
      const Index t = panel.begin + r;
      Real* dw = to.weights + p.row(panel.item, t) * p.S;
      std::copy_n(ds + r * step, panel.columns, dw + panel.first);
      p.visible.for_each_hidden(panel.item, t, panel.first, panel.first + panel.columns, [dw](Index s) { dw[s] = 0; });
    }
  for (Index r = 0; r < panel.rows; ++r) {
    const Packet mean = all(simd::sum(
        p.Dv, [](Packet a, Packet b) { return a * b; }, dy + r * y_row, y + r * y_row));
    Real* row = ds + r * step;
    simd::map(
        panel.columns, row, [=](Packet weight, Packet dw) { return weight * (dw - mean); }, w + r * step, row);
  }
  if (to.bias) add_to_bias(p, panel, {ds, step, 1}, to.bias);
  const Packet factor = all(p.factor);
  for (Index r = 0; r < panel.rows; ++r) {
    Real* row = ds + r * step;
    if (p.softcap > 0)
      simd::map(
          panel.columns, row, [=](Packet d, Packet slope) { return d * slope * factor; }, row,
          room.cap_slopes + r * step);
    else
      simd::map(
          panel.columns, row, [=](Packet d) { return d * factor; }, row);
  }
  Real* dq = to.q ? to.q + p.in_q.offset(panel.item) + panel.begin * p.in_q.row : nullptr;
  Real* dk = to.k ? to.k + p.in_k.offset(panel.item) + panel.first * p.in_k.row : nullptr;
  const ConstMatrix q_rows = rows_from(queries, panel.begin), k_rows = rows_from(keys, panel.first);
  if (p.vector.defined()) {
    Real* dvector = to.vector ? to.vector + p.in_vector.offset(panel.item) : nullptr;
    add_to_sums(p, panel, q_rows, k_rows, {ds, step, 1}, dq, dk, dvector, room.row);
    return;
  }
  if (dq) gemm(panel.rows, p.D, panel.columns, {ds, step, 1}, k_rows, {dq, p.in_q.row}, true);
  if (dk) gemm(panel.columns, p.D, panel.rows, {ds, 1, step}, q_rows, {dk, p.in_k.row}, true);
}

// f(panel, keys, values, room) for every panel of every item; neighbours `together` are one worker's.
template <class F>
void run(const Problem& p, Tape& tape, Index together, Index work_an_item, Index panels, F f) {
  const Index groups = p.count / std::max<Index>(together, 1), work = work_an_item * together;
  const Index size = Room::size(p, panels);
  Real* const scratch = tape.scratch(worker_count(groups, work) * size);
  const Real *k = p.k.value(), *v = p.v.value();
  for_pieces_by_worker(groups, work, [&](Index begin, Index end, Index, Index worker) {
    const Room room(p, panels, scratch + worker * size);
    for (Index item = begin * together; item < end * together; ++item) {
      const ConstMatrix keys = seen_rows(p, p.in_k, k, p.D, item, room.keys);
      const ConstMatrix values = seen_rows(p, p.in_v, v, p.Dv, item, room.values);
      for_each_panel(p, item, [&](const Panel& panel) { f(panel, keys, values, room); });
    }
  });
}

}  // namespace

void attention_forward(const AttentionProblem& p, Tape& tape) {
  run(p, tape, 1, p.T * p.S * (p.D + p.Dv) / 8, 1,
      [&](const Panel& panel, ConstMatrix keys, ConstMatrix values, const Room& room) {
        forward_panel(p, panel, keys, values, room);
      });
}

void attention_backward(const AttentionProblem& p, Tape& tape) {
  const auto buffer = [](Tensor x) { return x.defined() ? x.grad_buffer() : nullptr; };
  const Gradients to{buffer(p.q), buffer(p.k), buffer(p.v), buffer(p.bias), buffer(p.vector), buffer(p.weights)};
  // Items that add to one gradient are one worker's, in their order.
  Index together = 1;
  const auto join = [&](const Batches& in, const Real* gradient) {
    if (gradient) together = std::max(together, in.sharing());
  };
  join(p.in_q, to.q), join(p.in_k, to.k), join(p.in_v, to.v);
  join(p.in_bias, to.bias), join(p.in_vector, to.vector);
  run(p, tape, together, p.T * p.S * (p.D + p.Dv) / 4, 2,
      [&](const Panel& panel, ConstMatrix keys, ConstMatrix values, const Room& room) {
        for_each_block(panel, [&](const Panel& block) { backward_block(p, block, keys, values, to, room); });
      });
}

void attention_weights(const AttentionProblem& p, Tape& tape, Real* weights, Real* all_scores) {
  std::fill_n(weights, p.count * p.T * p.S, Real{0});
  std::fill_n(all_scores, p.count * p.T * p.S, -std::numeric_limits<Real>::infinity());
  run(p, tape, 1, p.T * p.S * p.D / 8, 1, [&](const Panel& panel, ConstMatrix keys, ConstMatrix, const Room& room) {
    for_each_block(panel, [&](const Panel& block) {
      Real* rows = room.weights;
      scores(p, block, p.in_q(p.q.value(), block.item), keys, room, rows);
      const auto copy_to = [&](Real* to) {
        for (Index r = 0; r < block.rows; ++r)
          std::copy_n(rows + r * room.step, block.columns, to + p.row(block.item, block.begin + r) * p.S + block.first);
      };
      copy_to(all_scores);
      weights_again(p, block, room.step, rows);
      copy_to(weights);
    });
  });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
