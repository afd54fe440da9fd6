// What the residual path says before it is finished, and which part of the model says what.
#pragma once

#include "train/interventions.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// Logit lens (nostalgebraist 2020): the last norm and the output head applied to the residual path after each block.
struct LensLayer {
  std::string name;                     // "embed", "blocks.0"
  std::vector<std::int32_t> likeliest;  // of each row
  std::vector<double> probability;      // of the row's target; NaN where nothing counts
};
std::vector<LensLayer> logit_lens(Model& model, const Batch& batch, Index sequence);

/// Direct logit attribution: what each part adds to one logit, with the last norm's scale held as it is. The parts sum
/// to the logit. Throws ConfigError for a model that ends without pre-norm's last norm.
struct Attribution {
  struct Part {
    std::string name;  // "embed", "L0H1", "blocks.0.attn bias", "blocks.0.mlp", "norm bias"
    double value = 0;
  };
  std::vector<Part> parts;
  double logit = 0;  // as the model has it
};
Attribution attribute_logit(Model& model, const Batch& batch, Index sequence, Index row, std::int32_t token);

}  // namespace tapehead::inline TAPEHEAD_REAL
