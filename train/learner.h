// One update of a model: the gradient of a batch, clipped, through AdamW. Where batches come from is the caller's.
#pragma once

#include "train/optimizer.h"
#include "train/shards.h"

namespace tapehead::inline TAPEHEAD_REAL {

struct StepReport {
  std::uint64_t step = 0;  // from 1
  double loss = 0;         // nats a counted token, of this step's batch before its update
  double learning_rate = 0;
  double grad_norm = 0;     // before clipping
  std::int64_t tokens = 0;  // read by the model: sources and inputs
};

class Learner {
 public:
  /// The model must outlive it and keep its parameters where they are.
  Learner(Model& model, const TrainConfig& config, std::uint64_t seed, int threads);

  std::uint64_t next_step() const { return optimizer_.steps() + 1; }
  /// Step next_step() from this batch. Once sizes repeat it allocates nothing. Throws Error, and changes no parameter,
  /// when the loss or the gradient is not finite.
  StepReport step(const Batch& batch);
  Evaluation evaluate(const Batch& batch) { return shards_.evaluate(batch); }

  Shards& shards() { return shards_; }
  AdamW& optimizer() { return optimizer_; }
  const AdamW& optimizer() const { return optimizer_; }

 private:
  Model& model_;
  TrainConfig config_;
  std::uint64_t seed_;
  Shards shards_;
  std::vector<NamedParameter> parameters_;
  AdamW optimizer_;
};

}  // namespace tapehead::inline TAPEHEAD_REAL
