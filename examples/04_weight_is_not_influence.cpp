// Lesson 4: a large weight on a value that says nothing.
//
// One query looks almost only at the first source. But that source's value is next to nothing, so what comes out, and
// what the loss feels, is decided by the last. A heatmap of weights alone would tell the wrong story: look at the
// length of what is mixed in (Kobayashi et al. 2020) and at weight x gradient, too.
//
// Then a whole model of the same kind: it copies one symbol without a fault, and its head looks almost only at the
// separator, whose value is 0. What it copies comes with a weight of 0.018, loud.
//
//   ./04_weight_is_not_influence [FILE.ckpt]      also saves the model: tapehead inspect FILE.ckpt --html FILE.html
#include <tapehead/tapehead.h>

#include <cmath>
#include <cstdio>

#include "examples/by_hand.h"
#include "train/evidence.h"
#include "train/rank.h"

using namespace tapehead;
using by_hand::put;

namespace {

void one_query() {
  Tape tape;
  const Tensor q = tape.input({1, 2}, {2, 0});
  const Tensor k = tape.input({3, 2}, {2, 0, 0.5, 0, 0, 1});
  const Tensor v = tape.variable({3, 2}, {0.01, 0, 0.2, 0.1, 3, -2});
  Attention options;
  options.keep_weights = true;
  const Tensor z = attention(q, k, v, options).keep_grad();  // [1, 2]
  const Tensor wanted = tape.input({1, 2}, {1, -1});
  tape.backward(mse(z, wanted));

  const std::vector<Real> weights = tape.find("attention.weights")[0].values(), values = v.values(), dz = z.grads();
  std::vector<double> looks, counts;
  std::printf("source  weight  weight x |value|  weight x dL/dweight\n");
  for (std::size_t s = 0; s < 3; ++s) {
    const double w = weights[s], x = values[2 * s], y = values[2 * s + 1];
    // z = sum of weight x value, so dL/dweight = dL/dz . value
    const double gradient = double{dz[0]} * x + double{dz[1]} * y;
    looks.push_back(w);
    counts.push_back(std::abs(w * gradient));
    std::printf("%6zu  %6.4f  %16.4f  %19.4f\n", s, w, w * std::hypot(x, y), w * gradient);
  }
  std::printf("The query looks at source 0; the loss hangs on source 2.\n");
  std::printf("Agreement of the two orders, Kendall's tau: %.2f\n\n", kendall_tau(looks, counts));
}

constexpr Index kTokens = 17, kPositions = 2;  // sixteen symbols and the separator; a symbol, the separator
constexpr double kGap = 4;                     // how much higher the score of the separator is
constexpr double kLoud = 300;                  // what makes up for a weight of 1 / (1 + exp(kGap))

// Channels of the residual path: one for each token, then one for each position.
void choose_matrices(Model& model, Index separator) {
  Transformer& net = model.net;
  const MultiHeadAttention& attn = net.stack.blocks[0].attn;
  by_hand::clear(model);
  for (Index token = 0; token < kTokens; ++token) {
    put(model, net.tokens.weight, token, token, 1);
    put(model, net.head->weight, token, token, 1);
    put(model, attn.o.weight, token, token, kLoud);
    if (token != separator) put(model, attn.v.weight, token, token, 1);  // the separator's value: 0
  }
  for (Index t = 0; t < kPositions; ++t) put(model, net.stack.positions.weight, t, kTokens + t, 1);
  put(model, attn.q.weight, 0, kTokens + 1,
      kGap * std::sqrt(2.0));  // scores are divided by the root of the key's width
  put(model, attn.k.weight, 0, separator, 1);
}

void whole_model(const char* file) {
  Config config = Config::defaults("copy");
  for (const char* setting : {"data.length=1", "data.symbols=16", "model.layers=1", "model.heads=1", "model.width=19",
                              "model.key_width=2", "model.value_width=17", "model.feed_forward=-1", "model.norm=none",
                              "model.bias=false", "model.tie_embeddings=false"})
    config.set(setting);
  Trainer trainer(config, 1);
  const std::unique_ptr<Task> task = make_task(config.task, config.data);
  choose_matrices(trainer.model(), task->separator());

  const Batch batch = BatchSource(*task, layout_of(config.model.kind), 1, 1).held_out(1, 1);
  const AttentionMap map = attention_maps(trainer.model(), batch, 0, task->vocabulary().tokens()).at(0);
  const HeadEvidence evidence = tapehead::evidence(trainer.model(), batch, 0).at(0);
  std::printf("the answer's row: weight %.4f on the separator, %.4f on the symbol\n", double{map.weights[3]},
              double{map.weights[2]});
  std::printf("exact match on 1 000 unseen sequences: %.0f %%\n", 100 * trainer.evaluate().exact_match);
  std::printf("A |v W_O|: %.4f and %.4f; |A dL/dA|: %.4f and %.4f\n", double{evidence.norm_weighted[3]},
              double{evidence.norm_weighted[2]}, std::abs(double{map.weights[3]} * double{evidence.gradient[3]}),
              std::abs(double{map.weights[2]} * double{evidence.gradient[2]}));
  std::printf("Agreement of weights and |A dL/dA|, Kendall's tau: %.2f\n", evidence.agreement);
  if (file) trainer.checkpoint().save(file);
}

}  // namespace

int main(int argc, char** argv) {
  one_query();
  whole_model(argc > 1 ? argv[1] : nullptr);
}
