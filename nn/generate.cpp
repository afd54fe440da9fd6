#include "nn/generate.h"

#include <algorithm>
#include <cmath>

#include "autograd/error.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

void require_room(const ModelConfig& config, Index length, Index source) {
  const Index longest = std::max(length, source);
  // Learned positions have a row for each place; the others were never trained beyond it either.
  if (longest > config.context)
    throw ConfigError(error_line("generate",
                                 "this needs a sequence of " + std::to_string(longest) +
                                     " tokens, the model was trained with " + std::to_string(config.context),
                                 {}, "shorten the prompt or ask for fewer tokens"));
}

}  // namespace

std::vector<std::int32_t> generate_greedy(Model& model, std::vector<std::int32_t> prompt,
                                          const std::vector<std::int32_t>& source, Index count) {
  if (prompt.empty() || (model.net.encoder && source.empty()))
    throw ConfigError(error_line("generate", "the prompt is empty", {}, "give at least one token"));
  const auto begin = static_cast<std::ptrdiff_t>(prompt.size());
  // The last token said is never read again.
  require_room(model.config, static_cast<Index>(prompt.size()) + count - 1, static_cast<Index>(source.size()));
  Tape tape(model.parameters);
  for (Index i = 0; i < count; ++i) {
    tape.reset();
    NoGrad no_grad(tape);
    const auto length = static_cast<Index>(prompt.size());
    const Ids inputs = tape.ids({1, length}, prompt);
    const Ids sources = source.empty() ? Ids{} : tape.ids({1, static_cast<Index>(source.size())}, source);
    const Tensor logits = model.net(inputs, sources);
    const Real* last = logits.value() + (length - 1) * logits.size(-1);
    const Real* end = last + logits.size(-1);
    if (!std::all_of(last, end, [](Real x) { return std::isfinite(x); }))
      throw Error(error_line("generate", "the logits after token " + std::to_string(length - 1) + " are not finite", {},
                             "the model's weights are damaged or its training diverged"));
    prompt.push_back(static_cast<std::int32_t>(std::max_element(last, end) - last));
  }
  return {prompt.begin() + begin, prompt.end()};
}

}  // namespace tapehead::inline TAPEHEAD_REAL
