#include "train/lens.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

double dot(const std::vector<double>& direction, const Real* x) {
  double sum = 0;
  for (std::size_t c = 0; c < direction.size(); ++c) sum += direction[c] * double{x[c]};
  return sum;
}

// What head `head` with mixture z [Dv] adds: direction . (W_O z), W_O [C, H Dv].
double head_part(const std::vector<Real>& o, Index head, const Real* z, Index width,
                 const std::vector<double>& direction) {
  const std::size_t columns = o.size() / direction.size();
  double sum = 0;
  for (std::size_t c = 0; c < direction.size(); ++c)
    for (Index i = 0; i < width; ++i)
      sum += direction[c] * double{o[c * columns + static_cast<std::size_t>(head * width + i)]} * double{z[i]};
  return sum;
}

// Each head of one attention, and its output's bias.
void add_attention(const Model& model, Tape& tape, const std::string& scope, const MultiHeadAttention& attention,
                   const std::string& prefix, Index row, const std::vector<double>& direction, Attribution& to) {
  const Tensor z = node(tape, scope, "hook_z");  // [1, H, T, Dv]
  const std::vector<Real> values = z.values(), o = attention.o.matrix(tape).values();
  const Index T = z.size(2), width = z.size(3);
  for (Index head = 0; head < z.size(1); ++head)
    to.parts.push_back({prefix + "H" + std::to_string(head),
                        head_part(o, head, values.data() + (head * T + row) * width, width, direction)});
  if (attention.o.bias)
    to.parts.push_back({scope + " bias", dot(direction, model.parameters.value(attention.o.bias).data())});
}

}  // namespace

Attribution attribute_logit(Model& model, const Batch& batch, Index sequence, Index row, std::int32_t token) {
  if (!model.net.stack.norm)
    throw ConfigError(error_line("attribution", "the model has no last norm: with post-norm parts do not add up", {},
                                 "use a model with model.norm_order = 'pre'"));
  if (row < 0 || row >= batch.target_length || token < 0 || token >= model.config.vocabulary)
    throw ConfigError(
        error_line("attribution", "there is no row " + std::to_string(row) + " or token " + std::to_string(token)));
  Tape tape(model.parameters);
  NoGrad no_grad(tape);
  const Tensor logits = record_logits(tape, model.net, batch, sequence, 1);
  const std::vector<Block>& blocks = model.net.stack.blocks;
  const Index C = model.config.width;
  const auto at_row = [&](Tensor x) { return x.value() + row * C; };
  const std::string last = block(blocks.size() - 1);
  const Readout r = readout(model, at_row(node(tape, last, "hook_resid_post")), token);
  Attribution a;
  a.logit = double{logits.value()[row * model.config.vocabulary + token]};
  a.parts.push_back({"embed", dot(r.direction, at_row(node(tape, "", "hook_embed")))});
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::string layer = "L" + std::to_string(i);
    add_attention(model, tape, block(i) + ".attn", blocks[i].attn, layer, row, r.direction, a);
    if (blocks[i].cross)
      add_attention(model, tape, block(i) + ".cross", *blocks[i].cross, "cross " + layer, row, r.direction, a);
    if (blocks[i].mlp)
      a.parts.push_back({block(i) + ".mlp", dot(r.direction, at_row(node(tape, block(i), "hook_mlp_out")))});
  }
  if (r.bias != 0) a.parts.push_back({"norm bias", r.bias});
  return a;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
