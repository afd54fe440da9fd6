// Lesson 5: two heads, each simple, that together do what neither can: induction (Olsson et al. 2022). After `... a b
// ... a` they say `b`, for any a and b. First the matrices are chosen and the maps predicted; then the second head's
// are made faint and learned again from the loss, while everything else is frozen.
//
// Channels: the token here, the token before (written by head 1), the answer (written by head 2), the position.
//   head 1 (layer 0) looks one position back and copies the token there into "the token before"
//   head 2 (layer 1) looks where "the token before" is the token here, and copies the token there into "the answer"
#include <array>
#include <cmath>
#include <cstdio>

#include "train/optimizer.h"
#include "train/shards.h"

using namespace tapehead;

namespace {

constexpr Index V = 6, T = 8, C = 3 * V + T;
constexpr Index kHere = 0, kBefore = V, kAnswer = 2 * V, kPosition = 3 * V;
constexpr double kGap = 8;  // how much higher the score of the right key is
constexpr std::array<std::int32_t, T> kSequence = {3, 1, 4, 0, 5, 2, 1, 4};  // 1 4 ... 1, and after it 4

void put(Model& model, const Parameter& p, Index row, Index column, double x) {
  model.parameters.value(p)[static_cast<std::size_t>(row * p.shape[1] + column)] = static_cast<Real>(x);
}

/// The head's W_Q and W_K compare `width` channels from `query` with those from `key`; it copies tokens to `to`.
void choose_head(Model& model, Index layer, double gap, Index to) {
  const MultiHeadAttention& attn = model.net.stack.blocks[static_cast<std::size_t>(layer)].attn;
  const Index width = layer == 0 ? T : V;
  const double root = std::sqrt(static_cast<double>(attn.key_width));
  for (Index i = 0; i < width; ++i) {
    if (layer == 0 && i > 0) put(model, attn.q.weight, i - 1, kPosition + i, gap * root);
    if (layer == 0) put(model, attn.k.weight, i, kPosition + i, 1);
    if (layer == 1) put(model, attn.q.weight, i, kHere + i, gap * root);
    if (layer == 1) put(model, attn.k.weight, i, kBefore + i, 1);
  }
  for (Index v = 0; v < V; ++v) {
    put(model, attn.v.weight, v, kHere + v, 1);
    put(model, attn.o.weight, to + v, v, 1);
  }
}

Model induction_pair() {
  ModelConfig config;
  config.layers = 2;
  config.width = C;
  config.heads = 1;
  config.key_width = T;
  config.feed_forward = -1;
  config.norm = NormKind::none;
  config.bias = config.tie_embeddings = false;
  config.context = T;
  config.vocabulary = V;
  Model model(config, 1);
  for (const NamedParameter& p : unique_parameters(model.net))
    std::ranges::fill(model.parameters.value(p.parameter), Real{0});
  for (Index v = 0; v < V; ++v) {
    put(model, model.net.tokens.weight, v, kHere + v, 1);
    put(model, model.net.head->weight, v, kAnswer + v, 10);
  }
  for (Index t = 0; t < T; ++t) put(model, model.net.stack.positions.weight, t, kPosition + t, 1);
  choose_head(model, 0, kGap, kBefore);
  choose_head(model, 1, kGap, kAnswer);
  return model;
}

/// Weights of row t in both layers, for the sequence above.
std::array<double, 2> weights_at(Model& model, Index t, Index s0, Index s1) {
  Tape tape(model.parameters);
  NoGrad no_grad(tape);
  tape.keep_weights = true;
  model.net(tape.ids({1, T}, kSequence));
  const auto maps = tape.find("attention.weights");
  return {double{maps[0].value()[t * T + s0]}, double{maps[1].value()[t * T + s1]}};
}

/// Loss (nats) of saying 4 after the second 1; with gradients when asked.
double loss_of(Model& model, bool gradients) {
  Tape tape(model.parameters);
  const Tensor logits = model.net(tape.ids({1, T}, kSequence));
  std::array<std::int32_t, T> targets;
  targets.fill(-1);
  targets[6] = 4;
  const Tensor loss = cross_entropy(logits, tape.ids({1, T}, targets));
  model.parameters.zero_grad();
  if (gradients) tape.backward(loss);
  return double{loss.item()};
}

}  // namespace

int main() {
  Model model = induction_pair();
  // Row 6 (the second 1). Head 1: position 5 scores kGap, the other six 0. Head 2: "the token before" at source s is
  // the token at s - 1 times that weight, so the source after the first 1 scores kGap times it, and every other source
  // as much as its "token before" is a 1 by leaking: exp of a number near 0.
  const double e = std::exp(kGap), first = e / (e + 6), leak = 1 / (e + 6);
  const auto [one_back, after_first] = weights_at(model, 6, 5, 2);
  std::printf("head 1 looks one back:          %.4f, predicted %.4f\n", one_back, first);
  double others = 0;
  for (Index s = 0; s < 7; ++s) {
    if (s == 2) continue;
    // Share of token 1 in "the token before" of source s: position 1 holds it, and position 6 for s = 6 as well.
    const double n = static_cast<double>(s), total = s == 0 ? 1 : std::exp(kGap) + n;
    const double share = s == 0 ? 0 : (s >= 1 ? 1 / total : 0) + (s == 6 ? leak : 0);
    others += std::exp(kGap * share);
  }
  const double right = std::exp(kGap * (e / (e + 2)));
  std::printf("head 2 looks after the first 1: %.4f, predicted %.4f\n", after_first, right / (right + others));
  std::printf("loss of saying 4:               %.4f\n", loss_of(model, false));

  // Learn it again: W_Q and W_K of head 2 start at a tenth, all else is frozen.
  const MultiHeadAttention& second = model.net.stack.blocks[1].attn;
  for (const Parameter& p : {second.q.weight, second.k.weight})
    for (Real& x : model.parameters.value(p)) x /= 10;
  TrainConfig train;
  train.weight_decay = 0;
  train.freeze = {"tokens", "positions", "blocks.0", "blocks.1.attn.v", "blocks.1.attn.o", "head"};
  AdamW optimizer(unique_parameters(model.net), model.parameters.size(), train);
  const Model before = model;
  std::printf("made faint: loss %.4f\n", loss_of(model, false));
  for (int step = 0; step < 200; ++step) {
    loss_of(model, true);
    optimizer.drop_frozen(model.parameters);
    optimizer.step(model.parameters, 0.05, 1);
  }
  bool unchanged = true;
  for (const NamedParameter& p : unique_parameters(model.net)) {
    const bool learned = p.parameter == second.q.weight || p.parameter == second.k.weight;
    unchanged &=
        learned || std::ranges::equal(model.parameters.value(p.parameter), before.parameters.value(p.parameter));
  }
  std::printf("learned again: loss below 0.01: %s; what is frozen stayed: %s\n",
              loss_of(model, false) < 0.01 ? "yes" : "no", unchanged ? "yes" : "no");
}
