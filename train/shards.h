// Passes of a model over a batch, cut into shards: the seam where the work of one step meets the threads.
//
// For small models the cheapest parallelism is one region a step: the batch is cut into shards by the size of the
// problem, one tape a thread, one gradient block a shard, and the blocks are added in shard order. So the result is the
// same, bit for bit, at any number of threads. A large model takes one shard, and its ops cut their own work.
#pragma once

#include <exception>
#include <memory>

#include "data/batch.h"
#include "nn/transformer.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// Records the model's logits [count, T, V] for sequences first .. first + count - 1 of a batch.
Tensor record_logits(Tape& tape, const Transformer& net, const Batch& batch, Index first, Index count);
/// Cross-entropy of the same sequences, in nats a counted token of the *whole* batch: shards' losses add up.
Tensor record_loss(Tape& tape, Tensor logits, const Batch& batch, Index first, Index count, Real label_smoothing = 0);

/// How many shards a batch of B sequences of T tokens is cut into.
Index shard_count(Index parameters, Index sequences, Index tokens);

struct Evaluation {
  double loss = 0;            // nats a counted token
  double token_accuracy = 0;  // of counted tokens, the most likely one is right
  double exact_match = 0;     // of sequences, every counted token is right
};

class Shards {
 public:
  /// Uses up to `threads` threads; the model must outlive it and keep its parameters where they are.
  Shards(Model& model, int threads);

  /// One forward and backward pass in training mode: the loss, and its gradient in model.parameters.grads().
  /// In a repeated step of equal sizes it allocates nothing.
  double gradients(const Batch& batch, const RandomContext& random, Real label_smoothing);
  /// With an observer that looks into every pass, or changes it.
  Evaluation evaluate(const Batch& batch, const TapObserver* observer = nullptr);
  /// The first thread's tape: with one thread it holds the last shard of the last pass.
  Tape& tape() { return *tapes_[0]; }

 private:
  template <class F>
  void run(Index count, F f);

  Model& model_;
  Index parameter_count_;
  std::vector<std::unique_ptr<Tape>> tapes_;  // one a thread
  std::vector<Numbers> blocks_;               // one a shard
  std::vector<double> losses_;
  std::vector<std::exception_ptr> errors_;
};

}  // namespace tapehead::inline TAPEHEAD_REAL
