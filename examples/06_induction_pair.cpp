// Lesson 6: two heads, each simple, that together do what neither can: induction (Olsson et al. 2022). After `... a b
// ... a` they say `b`, for any a and b. First the matrices are chosen and the maps predicted; then the second head's
// are made faint and learned again from the loss, while everything else is frozen.
//
// Channels: the token here, the token before (written by head 1), the answer (written by head 2), the position.
//   head 1 (layer 0) looks one position back and copies the token there into "the token before"
//   head 2 (layer 1) looks where "the token before" is the token here, and copies the token there into "the answer"
#include "examples/by_hand.h"
#include "train/optimizer.h"
#include "train/shards.h"

using namespace tapehead;
using by_hand::put;

namespace {

constexpr Index V = 6, T = 8, C = 3 * V + T;
constexpr Index kHere = 0, kBefore = V, kAnswer = 2 * V, kPosition = 3 * V;
constexpr double kGap = 8;  // how much higher the score of the right key is
constexpr std::array<std::int32_t, T> kSequence = {3, 1, 4, 0, 5, 2, 1, 4};  // 1 4 ... 1, and after it 4

/// Head 1 compares positions, a query's with its own place less one; head 2 the token here with the token before.
void choose_heads(Model& model) {
  const MultiHeadAttention &first = model.net.stack.blocks[0].attn, &second = model.net.stack.blocks[1].attn;
  const double gap = kGap * std::sqrt(static_cast<double>(T));  // scores are divided by the root
  for (Index t = 0; t < T; ++t) {
    if (t > 0) put(model, first.q.weight, t - 1, kPosition + t, gap);
    put(model, first.k.weight, t, kPosition + t, 1);
  }
  for (Index v = 0; v < V; ++v) {
    put(model, second.q.weight, v, kHere + v, gap);
    put(model, second.k.weight, v, kBefore + v, 1);
    put(model, first.v.weight, v, kHere + v, 1);
    put(model, second.v.weight, v, kHere + v, 1);
    put(model, first.o.weight, kBefore + v, v, 1);
    put(model, second.o.weight, kAnswer + v, v, 1);
  }
}

Model induction_pair() {
  ModelConfig config;
  config.layers = 2, config.heads = 1, config.width = C, config.key_width = T;
  config.context = T, config.vocabulary = V;
  config.feed_forward = -1, config.norm = NormKind::none;  // attention alone
  config.bias = config.tie_embeddings = false;
  Model model(config, 1);
  by_hand::clear(model);
  for (Index v = 0; v < V; ++v) {
    put(model, model.net.tokens.weight, v, kHere + v, 1);
    put(model, model.net.head->weight, v, kAnswer + v, 10);
  }
  for (Index t = 0; t < T; ++t) put(model, model.net.stack.positions.weight, t, kPosition + t, 1);
  choose_heads(model);
  return model;
}

using Map = by_hand::Map<T>;

/// Both heads' maps, and the loss (nats) of saying 4 after row 6, the second 1; leaves gradients.
struct Look {
  Map first, second;
  double loss;
};
Look look(Model& model) {
  Tape tape(model.parameters);
  tape.keep_weights = true;
  const std::array<std::int32_t, T> targets = {-1, -1, -1, -1, -1, -1, 4, -1};
  const Tensor loss = cross_entropy(model.net(tape.ids({1, T}, kSequence)), tape.ids({1, T}, targets));
  model.parameters.zero_grad();
  tape.backward(loss);
  const auto maps = tape.find("attention.weights");
  return {by_hand::map_of<T>(maps[0]), by_hand::map_of<T>(maps[1]), double{loss.item()}};
}

/// Head 1: the source one back scores kGap, all others 0.
Map predicted_first() {
  return by_hand::softmax_of<T>([](std::size_t t, std::size_t s) { return s + 1 == t ? kGap : 0; });
}
/// Head 2: source s scores kGap times the share that the token of row t has in its "token before".
Map predicted_second(const Map& first) {
  return by_hand::softmax_of<T>([&](std::size_t t, std::size_t s) {
    double share = 0;
    for (std::size_t j = 0; j <= s; ++j) share += kSequence[j] == kSequence[t] ? first[s][j] : 0;
    return kGap * share;
  });
}

}  // namespace

int main() {
  Model model = induction_pair();
  const Look chosen = look(model);
  const Map first = predicted_first();
  std::printf("head 1 looks one back, head 2 after the same token (percent, a row for each query):\n");
  by_hand::draw(kSequence, chosen.first, chosen.second);
  std::printf("both maps are the predicted ones to 5 digits: %s, %s\n",
              by_hand::is_near(chosen.first, first) ? "yes" : "no",
              by_hand::is_near(chosen.second, predicted_second(first)) ? "yes" : "no");
  std::printf("loss of saying 4 after the second 1: %.4f\n", chosen.loss);

  // Learn it again: W_Q and W_K of head 2 start at a tenth, all else is frozen.
  const MultiHeadAttention& second = model.net.stack.blocks[1].attn;
  for (const Parameter& p : {second.q.weight, second.k.weight})
    for (Real& x : model.parameters.value(p)) x /= 10;
  TrainConfig train;
  train.freeze = {"tokens", "positions", "blocks.0", "blocks.1.attn.v", "blocks.1.attn.o", "head"};
  AdamW optimizer(unique_parameters(model.net), model.parameters.size(), train);
  const Model before = model;
  const Parameter& frozen = model.net.stack.blocks[0].attn.q.weight;
  std::printf("made faint: loss %.4f\n", look(model).loss);
  for (int step = 0; step < 200; ++step) {
    look(model);
    optimizer.drop_frozen(model.parameters);
    optimizer.step(model.parameters, 0.05, 1);
  }
  std::printf("learned again: loss below 0.01: %s; what is frozen stayed: %s\n", look(model).loss < 0.01 ? "yes" : "no",
              std::ranges::equal(model.parameters.value(frozen), before.parameters.value(frozen)) ? "yes" : "no");
}
