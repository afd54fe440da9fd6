// Generation: a model says one token after another, each from all before it.
#pragma once

#include "nn/transformer.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// The `count` most likely next tokens after `prompt`, one at a time; of equally likely ones the first. `source` is
/// what an encoder-decoder encodes, else empty. Throws ConfigError when the sequence would outgrow the model's context
/// or the prompt is empty, Error when the logits are not finite.
std::vector<std::int32_t> generate_greedy(Model& model, std::vector<std::int32_t> prompt,
                                          const std::vector<std::int32_t>& source, Index count);

}  // namespace tapehead::inline TAPEHEAD_REAL
