// Where a head is within a model, and what is computed of it afterwards: plain data, the same in both precisions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tapehead {

/// Which attention of a model.
struct AttentionPlace {
  std::string kind;  // as in AttentionMap
  std::int32_t layer = 0;
  bool operator==(const AttentionPlace&) const = default;
};

struct HeadPlace {
  AttentionPlace attention;
  std::int64_t head = 0;
  bool operator==(const HeadPlace&) const = default;
};

/// Evidence beside the weights of one head in one sequence; all [T, S], 0 where masked.
struct HeadEvidence {
  HeadPlace place;
  std::vector<float> gradient;       // dL/dA_ij, L the loss of the sequence, nats a counted token
  std::vector<float> norm_weighted;  // A_ij |v_j W_O|, the length of what enters the residual path (Kobayashi 2020)
  double agreement = 0;              // Kendall's tau-b of A_ij and |A_ij dL/dA_ij|, mean over counted rows
};

/// q, k and v of one head as the tape had them, and what turns q . k into the score.
struct HeadProjections {
  HeadPlace place;
  std::int64_t T = 0, S = 0, D = 0, Dv = 0;
  std::vector<float> q, k, v;  // [T, D], [S, D], [S, Dv]
  float scale = 1;             // score = q . k * scale
  float temperature = 1;       // that the scale holds already
  bool dot = true;             // scores are scale q . k: neither additive nor capped nor lowered by distance
};

/// Logit lens (nostalgebraist 2020): what the model would say if it ended after a part of it.
struct LensLayer {
  std::string name;                     // "embed", "blocks.0"
  std::vector<std::int32_t> likeliest;  // of each row
  std::vector<double> probability;      // of the row's target; NaN where nothing counts
};

/// Direct logit attribution of one row: what each part adds to the logit of a token, and to how far it leads the
/// likeliest other. The parts sum to both.
struct Attribution {
  struct Part {
    std::string name;  // "embed", "L0H1", "blocks.0.attn bias", "blocks.0.mlp", "norm bias"
    double value = 0, lead = 0;
  };
  std::int64_t row = 0;
  std::int32_t token = 0, other = 0;
  std::vector<Part> parts;
  double logit = 0, lead = 0;  // as the model has them
};

}  // namespace tapehead
