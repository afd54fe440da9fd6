// What the residual path says before it is finished, and which part of the model says what.
#pragma once

#include "train/interventions.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// The last norm and the output head applied to the residual path after each block.
std::vector<LensLayer> logit_lens(Model& model, const Batch& batch, Index sequence);

/// With the last norm's scale held as it is. Throws ConfigError for a model that ends without pre-norm's last norm.
Attribution attribute_logit(Model& model, const Batch& batch, Index sequence, Index row, std::int32_t token);
/// The same of each row that counts in the loss and its target; none for a model that cannot be attributed.
std::vector<Attribution> attribute_answers(Model& model, const Batch& batch, Index sequence);

}  // namespace tapehead::inline TAPEHEAD_REAL
