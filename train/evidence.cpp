#include "train/evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/error.h"
#include "train/rank.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

// The node `name` of the attention at `place`.
Tensor node_at(Tape& tape, const char* name, const AttentionPlace& place, const Transformer& net) {
  for (const Tensor& x : tape.find(name))
    if (attention_place(x.node().scope, net) == place) return x;
  throw Error(error_line("evidence", std::string(name) + " of " + place.kind + " layer " + std::to_string(place.layer) +
                                         " is not on the tape"));
}

// One pass over sequences with its weights kept, and a gradient of each head's output. The loss is that of each
// sequence by itself, summed.
class Pass {
 public:
  Pass(Model& model, const Batch& batch, Index first, Index count)
      : tape_(model.parameters), block_(static_cast<std::size_t>(model.parameters.size())) {
    tape_.keep_weights = true;
    tape_.set_gradient_block(block_.data());
    const Tensor logits = record_logits(tape_, model.net, batch, first, count);
    for (const Tensor& z : tape_.find("hook_z")) z.keep_grad();
    const Tensor loss = record_loss(tape_, logits, batch, first, count);
    tape_.backward(scale(loss, static_cast<Real>(batch.sequences)));
  }
  Tape& tape() { return tape_; }

 private:
  Tape tape_;
  Numbers block_;  // the model's own gradients stay as they are
};

// Head `head` of x [1, Hx, N, D] as rows [N, D]; heads may share it.
std::vector<Real> head_rows(Tensor x, Index head, Index heads) {
  const std::vector<Real> values = x.values();
  const Index size = x.size(2) * x.size(3), at = head / (heads / x.size(1)) * size;
  return {values.begin() + at, values.begin() + at + size};
}

Real dot(const Real* a, const Real* b, Index n) {
  Real sum = 0;
  for (Index i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Factor of a head's output: 0 when it is pruned.
Real head_factor(const MultiHeadAttention& attention, Index head) {
  return attention.head_mask.empty() ? Real{1} : attention.head_mask[static_cast<std::size_t>(head)];
}

// |v_j W_O| for each source: W_O [C, H Dv], whatever it is made of; columns of this head.
std::vector<Real> projected_lengths(Tape& tape, const std::vector<Real>& v, Index S, Index Dv, const HeadPlace& place,
                                    const MultiHeadAttention& attention) {
  const Tensor o = attention.o.matrix(tape);
  const std::vector<Real> matrix = o.values();
  std::vector<Real> lengths(static_cast<std::size_t>(S));
  for (Index s = 0; s < S; ++s) {
    double square = 0;
    for (Index c = 0; c < o.size(0); ++c) {
      const auto x = double{dot(matrix.data() + c * o.size(1) + place.head * Dv, v.data() + s * Dv, Dv)};
      square += x * x;
    }
    lengths[static_cast<std::size_t>(s)] = static_cast<Real>(std::sqrt(square)) * head_factor(attention, place.head);
  }
  return lengths;
}

// Mean over counted rows of the agreement of weights and |weights * gradient| among visible sources.
double agreement(const AttentionMap& map, const std::vector<float>& gradient) {
  double sum = 0;
  int rows = 0;
  for (int t = 0; t < map.rows; ++t) {
    if (!map.ideal.empty() && map.ideal[static_cast<std::size_t>(t)] < 0) continue;
    std::vector<double> a, b;
    for (int s = 0; s < map.columns; ++s) {
      const auto cell =
          static_cast<std::size_t>(t) * static_cast<std::size_t>(map.columns) + static_cast<std::size_t>(s);
      if (!map.visible[cell]) continue;
      a.push_back(double{map.weights[cell]});
      b.push_back(std::abs(double{map.weights[cell]} * double{gradient[cell]}));
    }
    const double tau = kendall_tau(a, b);
    if (std::isnan(tau)) continue;
    sum += tau;
    ++rows;
  }
  return rows ? sum / rows : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::vector<HeadEvidence> evidence(Model& model, const Batch& batch, Index sequence) {
  if (batch.counted == 0) return {};
  Pass pass(model, batch, sequence, 1);
  const std::vector<std::string> names(static_cast<std::size_t>(model.config.vocabulary), "x");
  std::vector<HeadEvidence> list;
  for (const AttentionMap& map : attention_maps(pass.tape(), model, batch, sequence, sequence, names)) {
    const HeadPlace place{{map.kind, map.layer}, map.head};
    const MultiHeadAttention& attention = attention_at(model.net, place.attention);
    const Tensor z = node_at(pass.tape(), "hook_z", place.attention, model.net);
    const Tensor v = node_at(pass.tape(), "hook_v", place.attention, model.net);
    const Index T = map.rows, S = map.columns, Dv = v.size(3), heads = z.size(1);
    const std::vector<Real> values = head_rows(v, place.head, heads), all = z.grads();
    const Real* dz = all.data() + place.head * T * Dv;
    const std::vector<Real> lengths = projected_lengths(pass.tape(), values, S, Dv, place, attention);
    const Real factor = head_factor(attention, place.head);
    HeadEvidence e{place, std::vector<float>(map.weights.size()), std::vector<float>(map.weights.size()), 0};
    for (Index t = 0, cell = 0; t < T; ++t)
      for (Index s = 0; s < S; ++s, ++cell) {
        const auto i = static_cast<std::size_t>(cell);
        if (!map.visible[i]) continue;
        e.gradient[i] = static_cast<float>(factor * dot(dz + t * Dv, values.data() + s * Dv, Dv));
        e.norm_weighted[i] = map.weights[i] * static_cast<float>(lengths[static_cast<std::size_t>(s)]);
      }
    e.agreement = agreement(map, e.gradient);
    list.push_back(std::move(e));
  }
  return list;
}

std::vector<std::vector<float>> knock_outs(Model& model, const Batch& batch, Index sequence) {
  std::vector<std::vector<float>> list;
  if (batch.counted == 0) return list;
  const std::vector<std::string> names(static_cast<std::size_t>(model.config.vocabulary), "x");
  Tape tape(model.parameters);
  NoGrad no_grad(tape);
  tape.keep_weights = true;
  const auto loss = [&](const TapObserver* observer) {
    tape.reset();
    tape.observer = observer;
    return double{record_loss(tape, record_logits(tape, model.net, batch, sequence, 1), batch, sequence, 1).item()} *
           static_cast<double>(batch.sequences);
  };
  const double whole = loss(nullptr);
  for (const AttentionMap& map : attention_maps(model, batch, sequence, names)) {
    std::vector<float> rise(map.weights.size(), std::numeric_limits<float>::quiet_NaN());
    for (Index t = 0, cell = 0; t < map.rows; ++t)
      for (Index s = 0; s < map.columns; ++s, ++cell) {
        const auto i = static_cast<std::size_t>(cell);
        if (!map.visible[i] || !(map.weights[i] < 1)) continue;
        Interventions change(model.net);
        change.knock_out({{map.kind, map.layer}, map.head}, t, s);
        rise[i] = static_cast<float>(loss(&change) - whole);
      }
    list.push_back(std::move(rise));
  }
  return list;
}

std::vector<double> head_importance(Model& model, const Batch& batch) {
  std::vector<double> list;
  if (batch.counted == 0) return list;
  Pass pass(model, batch, 0, batch.sequences);
  for (const HeadPlace& place : heads_of(model.net)) {
    const Tensor z = node_at(pass.tape(), "hook_z", place.attention, model.net);
    const std::vector<Real> values = z.values(), grads = z.grads();
    const Index size = z.size(2) * z.size(3);
    double sum = 0;
    for (Index b = 0; b < batch.sequences; ++b) {
      const Index at = (b * z.size(1) + place.head) * size;
      sum += std::abs(double{dot(values.data() + at, grads.data() + at, size)});
    }
    list.push_back(sum / static_cast<double>(std::max<Index>(batch.sequences, 1)));
  }
  return list;
}

std::vector<HeadProjections> projections(Model& model, const Batch& batch, Index sequence) {
  Tape tape(model.parameters);
  NoGrad no_grad(tape);
  record_logits(tape, model.net, batch, sequence, 1);
  std::vector<HeadProjections> list;
  for (const HeadPlace& place : heads_of(model.net)) {
    const Tensor q = node_at(tape, "hook_q", place.attention, model.net);
    const Tensor k = node_at(tape, "hook_k", place.attention, model.net);
    const Tensor v = node_at(tape, "hook_v", place.attention, model.net);
    const auto floats = [&](Tensor x) {
      const std::vector<Real> rows = head_rows(x, place.head, q.size(1));
      return std::vector<float>(rows.begin(), rows.end());
    };
    const MultiHeadAttention& a = attention_at(model.net, place.attention);
    const auto temperature = double{a.options.temperature};
    list.push_back({place, q.size(2), k.size(2), q.size(3), v.size(3), floats(q), floats(k), floats(v),
                    static_cast<float>(double{a.options.scale} / temperature), static_cast<float>(temperature),
                    !a.score && a.options.softcap == 0 && a.slopes.empty()});
  }
  return list;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
