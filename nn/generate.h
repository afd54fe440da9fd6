// Generation: a model says one token after another, each from all before it.
#pragma once

#include <functional>
#include <optional>

#include "nn/transformer.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// How the next token is drawn from softmax(logits / temperature).
struct Sampling {
  double temperature = 0;  // 0: the most likely token, of equal ones the first
  Index top_k = 0;         // only among the k most likely; 0: all
  double top_p = 1;        // only among the fewest most likely that hold this share (Holtzman et al. 2020)
  std::optional<std::int32_t> stop = {};  // a token after which nothing follows
  std::uint64_t seed = 1;
};

struct Generated {
  std::vector<std::int32_t> tokens;  // what followed the prompt
  Index forgotten = 0;               // tokens of the beginning that the last step did not see
};

/// Up to `count` tokens after `prompt`; `source` is what an encoder-decoder encodes, else empty. Keys and values of
/// earlier tokens are kept. A sequence beyond the model's context slides: the model reads its last `context` tokens
/// anew. Throws ConfigError for an empty prompt, a source beyond the context and options out of range, Error when the
/// logits are not finite.
Generated generate(Model& model, std::vector<std::int32_t> prompt, const std::vector<std::int32_t>& source, Index count,
                   const Sampling& sampling = {});

/// The token that `uniform` in [0, 1) draws from a row of logits. Throws Error when they are not finite.
std::int32_t draw_token(std::span<const Real> logits, const Sampling& sampling, double uniform);

}  // namespace tapehead::inline TAPEHEAD_REAL
