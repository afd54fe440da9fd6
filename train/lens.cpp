#include "train/lens.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "autograd/error.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

// The node of this name and scope; every part of a model's main stack has its own.
Tensor node(Tape& tape, const std::string& scope, const char* name) {
  for (const Tensor& x : tape.find(name))
    if (scope == x.node().scope) return x;
  throw Error(error_line("lens", std::string(name) + " is not on the tape", scope));
}

std::string block(std::size_t i) { return "blocks." + std::to_string(i); }

Tensor output_of(Tape& tape, const Transformer& net, Tensor residual) {
  const Tensor x = net.stack.norm ? (*net.stack.norm)(residual) : residual;
  return net.head ? (*net.head)(x) : linear(x, tape.param(net.tokens.weight));
}

LensLayer read(const std::string& name, Tensor logits, const std::int32_t* targets) {
  LensLayer layer{name, {}, {}};
  const Index rows = logits.size(1), V = logits.size(2);
  for (Index t = 0; t < rows; ++t) {
    const Real* row = logits.value() + t * V;
    const Real* largest = std::max_element(row, row + V);
    double sum = 0;
    for (Index v = 0; v < V; ++v) sum += std::exp(double{row[v]} - double{*largest});
    layer.likeliest.push_back(static_cast<std::int32_t>(largest - row));
    layer.probability.push_back(targets[t] == Batch::kIgnore
                                    ? std::numeric_limits<double>::quiet_NaN()
                                    : std::exp(double{row[targets[t]]} - double{*largest}) / sum);
  }
  return layer;
}

}  // namespace

std::vector<LensLayer> logit_lens(Model& model, const Batch& batch, Index sequence) {
  Tape tape(model.parameters);
  NoGrad no_grad(tape);
  record_logits(tape, model.net, batch, sequence, 1);
  const std::int32_t* targets = batch.targets.data() + sequence * batch.target_length;
  std::vector<LensLayer> layers = {read("embed", output_of(tape, model.net, node(tape, "", "hook_embed")), targets)};
  for (std::size_t i = 0; i < model.net.stack.blocks.size(); ++i)
    layers.push_back(read(block(i), output_of(tape, model.net, node(tape, block(i), "hook_resid_post")), targets));
  return layers;
}

namespace {

// d logit / d residual with the norm's scale held: a part p adds sum_c p_c direction_c.
struct Readout {
  std::vector<double> direction;  // [C]
  double bias = 0;                // the norm's own
};

Readout readout(const Model& model, const Real* residual, std::int32_t token) {
  const Norm& norm = *model.net.stack.norm;
  const Parameter& table = model.net.head ? model.net.head->weight : model.net.tokens.weight;
  const auto C = static_cast<std::size_t>(model.config.width);
  const Real* row = model.parameters.value(table).data() + static_cast<std::size_t>(token) * C;
  Readout r;
  r.direction.assign(row, row + C);
  if (norm.kind == NormKind::none) return r;
  const bool centred = norm.kind == NormKind::layer;
  double mean = 0, square = 0, shift = 0;
  for (std::size_t c = 0; c < C && centred; ++c) mean += double{residual[c]} / static_cast<double>(C);
  for (std::size_t c = 0; c < C; ++c) square += std::pow(double{residual[c]} - mean, 2) / static_cast<double>(C);
  const Real* gain = model.parameters.value(norm.weight).data();
  for (std::size_t c = 0; c < C; ++c) r.direction[c] *= double{gain[c]} / std::sqrt(square + 1e-5);
  for (const double x : r.direction) shift += x / static_cast<double>(C);
  for (double& x : r.direction) x -= centred ? shift : 0;  // layer norm takes each part's mean away
  if (norm.bias) {
    const Real* bias = model.parameters.value(norm.bias).data();
    for (std::size_t c = 0; c < C; ++c) r.bias += double{bias[c]} * double{row[c]};
  }
  return r;
}

// One addend of the residual path at its end: rows that go in as they are, or through a matrix W_O [C, columns] first.
struct Addend {
  std::string name;
  std::vector<Real> rows;  // [T, width]
  Index width = 0;
  bool every_row = false;  // a bias: the first row is that of all
  std::vector<Real> output = {};
  Index first_column = 0;  // of W_O: where the head's columns begin

  double along(const std::vector<double>& direction, Index row) const {
    const Real* x = rows.data() + (every_row ? 0 : row * width);
    const std::size_t columns = output.size() / direction.size();
    double sum = 0;
    for (std::size_t c = 0; c < direction.size(); ++c) {
      double entry = output.empty() ? double{x[c]} : 0;
      for (Index i = 0; i < width && !output.empty(); ++i)
        entry += double{output[c * columns + static_cast<std::size_t>(first_column + i)]} * double{x[i]};
      sum += direction[c] * entry;
    }
    return sum;
  }
};

// Each head of one attention, and its output's bias.
void add_attention(const Model& model, Tape& tape, const std::string& scope, const MultiHeadAttention& attention,
                   const std::string& prefix, std::vector<Addend>& to) {
  const Tensor z = node(tape, scope, "hook_z");  // [1, H, T, Dv]
  const std::vector<Real> values = z.values(), o = attention.o.matrix(tape).values();
  const Index T = z.size(2), width = z.size(3);
  for (Index head = 0; head < z.size(1); ++head) {
    const auto begin = values.begin() + head * T * width;
    to.push_back({prefix + "H" + std::to_string(head), {begin, begin + T * width}, width, false, o, head * width});
  }
  if (attention.o.bias) {
    const auto bias = model.parameters.value(attention.o.bias);
    to.push_back({scope + " bias", {bias.begin(), bias.end()}, model.config.width, true});
  }
}

std::vector<Addend> addends_of(const Model& model, Tape& tape) {
  const Index C = model.config.width;
  std::vector<Addend> all = {{"embed", node(tape, "", "hook_embed").values(), C}};
  const std::vector<Block>& blocks = model.net.stack.blocks;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::string layer = "L" + std::to_string(i);
    add_attention(model, tape, block(i) + ".attn", blocks[i].attn, layer, all);
    if (blocks[i].cross) add_attention(model, tape, block(i) + ".cross", *blocks[i].cross, "cross " + layer, all);
    if (blocks[i].mlp) all.push_back({block(i) + ".mlp", node(tape, block(i), "hook_mlp_out").values(), C});
  }
  return all;
}

// The largest of a row of logits but for one.
std::int32_t likeliest_other(const Real* row, Index vocabulary, std::int32_t token) {
  std::int32_t best = token == 0 && vocabulary > 1 ? 1 : 0;
  for (std::int32_t v = 0; v < vocabulary; ++v)
    if (v != token && row[v] > row[best]) best = v;
  return best;
}

Attribution attribute(const Model& model, const std::vector<Addend>& addends, const Real* residual, const Real* logits,
                      Index row, std::int32_t token) {
  Attribution a{row, token, likeliest_other(logits, model.config.vocabulary, token), {}, double{logits[token]}, 0};
  a.lead = a.logit - double{logits[a.other]};
  const Readout mine = readout(model, residual, token), theirs = readout(model, residual, a.other);
  for (const Addend& addend : addends) {
    const double value = addend.along(mine.direction, row);
    a.parts.push_back({addend.name, value, value - addend.along(theirs.direction, row)});
  }
  if (mine.bias != 0 || theirs.bias != 0) a.parts.push_back({"norm bias", mine.bias, mine.bias - theirs.bias});
  return a;
}

// Rows with the token to attribute each.
std::vector<Attribution> attribute_rows(Model& model, const Batch& batch, Index sequence,
                                        const std::vector<std::pair<Index, std::int32_t>>& rows) {
  Tape tape(model.parameters);
  NoGrad no_grad(tape);
  const Tensor logits = record_logits(tape, model.net, batch, sequence, 1);
  const std::vector<Addend> addends = addends_of(model, tape);
  const Tensor residual = node(tape, block(model.net.stack.blocks.size() - 1), "hook_resid_post");
  std::vector<Attribution> list;
  list.reserve(rows.size());
  for (const auto& [row, token] : rows)
    list.push_back(attribute(model, addends, residual.value() + row * model.config.width,
                             logits.value() + row * model.config.vocabulary, row, token));
  return list;
}

}  // namespace

Attribution attribute_logit(Model& model, const Batch& batch, Index sequence, Index row, std::int32_t token) {
  if (!model.net.stack.norm)
    throw ConfigError(error_line("attribution", "the model has no last norm: with post-norm parts do not add up", {},
                                 "use a model with model.norm_order = 'pre'"));
  if (row < 0 || row >= batch.target_length || token < 0 || token >= model.config.vocabulary)
    throw ConfigError(
        error_line("attribution", "there is no row " + std::to_string(row) + " or token " + std::to_string(token)));
  return attribute_rows(model, batch, sequence, {{row, token}}).front();
}

std::vector<Attribution> attribute_answers(Model& model, const Batch& batch, Index sequence) {
  std::vector<std::pair<Index, std::int32_t>> rows;
  const std::int32_t* targets = batch.targets.data() + sequence * batch.target_length;
  for (Index t = 0; t < batch.target_length && model.net.stack.norm; ++t)
    if (targets[t] != Batch::kIgnore) rows.emplace_back(t, targets[t]);
  return rows.empty() ? std::vector<Attribution>{} : attribute_rows(model, batch, sequence, rows);
}

}  // namespace tapehead::inline TAPEHEAD_REAL
