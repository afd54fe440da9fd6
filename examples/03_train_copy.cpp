// Lesson 3: nobody tells attention where to look. Train a model to copy ten symbols, and the diagonal appears.
//
// The loss says only which symbol was expected. To lower it, a head must learn, for each answer, to look at the one
// source position that holds it. Steps are written out here; train() in train/trainer.h adds folders and checkpoints.
#include <algorithm>
#include <cstdio>

#include "autograd/attention.h"
#include "train/trainer.h"

using namespace tapehead;

namespace {

// The head that looks where the task's rule says, as rows of answers over columns of the source.
void draw(Trainer& trainer) {
  const std::vector<AttentionMap> maps = trainer.snapshot().maps;
  const AttentionMap& best =
      *std::ranges::max_element(maps, {}, [](const AttentionMap& map) { return pattern_match(map); });
  for (std::int32_t row = 0; row < best.rows; ++row) {
    if (best.ideal[static_cast<std::size_t>(row)] < 0) continue;  // not an answer
    std::printf("  ");
    for (std::int32_t column = 0; column < 10; ++column) {
      const float weight = best.weights[static_cast<std::size_t>(row * best.columns + column)];
      std::printf(" %c", weight > 0.5f ? '#' : '.');
    }
    std::printf("\n");
  }
}

}  // namespace

int main() {
  Config config = Config::defaults("copy");
  config.set("model.layers=1");
  Trainer trainer(config, 1);

  std::puts("before training, no head prefers any source:");
  draw(trainer);

  while (trainer.evaluate().exact_match < 1 && trainer.steps_done() < 1000)
    for (int i = 0; i < 25; ++i) trainer.step();

  std::printf("after training, exact match %.0f %%: each answer looks at the symbol it copies\n",
              100 * trainer.evaluate().exact_match);
  draw(trainer);
}
