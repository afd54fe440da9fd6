// Lesson 5: a head whose matrices are chosen, not learned. It copies from the first step on, and its map is the one
// that arithmetic predicts. Then training goes on from there, with what makes the map frozen.
//
// Channels of the residual path: one for each token, then one for each position. W_Q reads the position ten to the
// left, W_K the position itself: query t and key s fit when s = t - 10. W_V reads the token, W_O writes it back,
// louder than the token that stands there. No norm, no feed-forward: attention alone.
//
//   ./05_copy_head_by_hand [FILE.ckpt]      also saves the model: tapehead inspect FILE.ckpt draws it
#include <cmath>
#include <cstdio>

#include "examples/by_hand.h"
#include "train/trainer.h"

using namespace tapehead;
using by_hand::put;

namespace {

constexpr Index kSymbols = 10, kTokens = 17, kPositions = 20;  // the width is 17 + 20
constexpr double kGap = 6;                                     // how much higher the score of the right key is

void choose_matrices(Model& model) {
  Transformer& net = model.net;
  const MultiHeadAttention& attn = net.stack.blocks[0].attn;
  by_hand::clear(model);
  for (Index v = 0; v < kTokens; ++v) {
    put(model, net.tokens.weight, v, v, 1);
    put(model, net.head->weight, v, v, 1);
    put(model, attn.v.weight, v, v, 1);
    put(model, attn.o.weight, v, v, 10);
  }
  const double root = std::sqrt(static_cast<double>(kPositions));  // scores are divided by it
  for (Index t = 0; t < kPositions; ++t) {
    put(model, net.stack.positions.weight, t, kTokens + t, 1);
    put(model, attn.k.weight, t, kTokens + t, 1);
    if (t >= kSymbols) put(model, attn.q.weight, t - kSymbols, kTokens + t, kGap * root);
  }
}

/// Row t: the right key's score is kGap, all others' 0; without a right key all t + 1 sources weigh the same.
double predicted(Index t, Index s) {
  const double others = static_cast<double>(t), right = std::exp(kGap);
  if (s > t) return 0;
  if (t < kSymbols) return 1 / (others + 1);
  return (s == t - kSymbols ? right : 1) / (right + others);
}

bool is_predicted(const AttentionMap& map) {
  for (Index t = 0; t < map.rows; ++t)
    for (Index s = 0; s < map.columns; ++s) {
      const auto weight = double{map.weights[static_cast<std::size_t>(t * map.columns + s)]};
      if (std::abs(weight - predicted(t, s)) > 1e-6) return false;
    }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Config config = Config::defaults("copy");
  for (const char* setting :
       {"model.layers=1", "model.heads=1", "model.width=37", "model.key_width=20", "model.value_width=17",
        "model.feed_forward=-1", "model.norm=none", "model.bias=false", "model.tie_embeddings=false",
        "train.freeze=tokens,positions,blocks.0.attn.q,blocks.0.attn.k", "train.learning_rate=0.01"})
    config.set(setting);
  Trainer trainer(config, 1);
  choose_matrices(trainer.model());

  const AttentionMap map = trainer.snapshot().maps.at(0);
  std::printf("weight of the copied symbol in the first answer: %.4f, predicted %.4f\n",
              double{map.weights[static_cast<std::size_t>(10 * map.columns)]}, predicted(10, 0));
  std::printf("the whole map is the predicted one to 6 digits: %s\n", is_predicted(map) ? "yes" : "no");
  std::printf("exact match on 1 000 unseen sequences: %.0f %%\n", 100 * trainer.evaluate().exact_match);
  if (argc > 1) trainer.checkpoint().save(argv[1]);

  // What decides where the head looks is frozen; what it says of what it sees is learned on.
  const double chosen = trainer.evaluate().loss;
  for (int i = 0; i < 20; ++i) trainer.step();
  const AttentionMap later = trainer.snapshot().maps.at(0);
  std::printf("trained from there: the loss falls: %s; the frozen map is still the predicted one: %s\n",
              trainer.evaluate().loss < chosen ? "yes" : "no", is_predicted(later) ? "yes" : "no");
}
