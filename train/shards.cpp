#include "train/shards.h"

#include <omp.h>

#include <algorithm>

#include "autograd/kernels/parallel.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {
Ids rows(Tape& tape, const std::vector<std::int32_t>& all, Index width, Index first, Index count) {
  return tape.ids({count, width}, std::span(all).subspan(static_cast<std::size_t>(first * width),
                                                         static_cast<std::size_t>(count * width)));
}
}  // namespace

Tensor record_logits(Tape& tape, const Transformer& net, const Batch& batch, Index first, Index count) {
  const Ids inputs = rows(tape, batch.inputs, batch.target_length, first, count);
  return net(inputs, batch.source_length ? rows(tape, batch.source, batch.source_length, first, count) : Ids{});
}

Tensor record_loss(Tape& tape, Tensor logits, const Batch& batch, Index first, Index count, Real label_smoothing) {
  CrossEntropy options;
  options.ignore = Batch::kIgnore;
  options.label_smoothing = label_smoothing;
  options.divisor = batch.counted;
  Scope scope(tape, "loss");
  return cross_entropy(logits, rows(tape, batch.targets, batch.target_length, first, count), options);
}

Index shard_count(Index parameters, Index sequences, Index tokens) {
  constexpr Index kLargeModel = 400'000, kMostShards = 8, kTokensAShard = 128;
  if (parameters > kLargeModel) return 1;
  return std::clamp<Index>(std::max<Index>(4, sequences * tokens / kTokensAShard), 1, std::min(sequences, kMostShards));
}

Shards::Shards(Model& model, int threads) : model_(model), parameter_count_(parameter_count(model.net)) {
  for (int i = 0; i < std::max(threads, 1); ++i) tapes_.push_back(std::make_unique<Tape>(model.parameters));
}

// Calls f(tape, shard) for each shard, on the tape of the thread that runs it. The first shard's error comes out.
template <class F>
void Shards::run(Index count, F f) {
  errors_.assign(static_cast<std::size_t>(count), nullptr);
  const auto guarded = [&](Tape& tape, Index shard) {
    try {
      tape.reset();
      f(tape, shard);
    } catch (...) {
      errors_[static_cast<std::size_t>(shard)] = std::current_exception();
    }
  };
  if (count == 1 || tapes_.size() == 1) {
    for (Index shard = 0; shard < count; ++shard) guarded(*tapes_[0], shard);
  } else {
#pragma omp parallel for schedule(static) num_threads(static_cast <int>(tapes_.size()))
    for (Index shard = 0; shard < count; ++shard)
      guarded(*tapes_[static_cast<std::size_t>(omp_get_thread_num())], shard);
  }
  for (const std::exception_ptr& error : errors_)
    if (error) std::rethrow_exception(error);
}

double Shards::gradients(const Batch& batch, const RandomContext& random, Real label_smoothing) {
  const Index shards = shard_count(parameter_count_, batch.sequences, batch.target_length);
  const auto count = static_cast<std::size_t>(shards);
  ParameterSet& set = model_.parameters;
  if (shards > 1 && blocks_.size() < count) blocks_.resize(count, Numbers(static_cast<std::size_t>(set.size())));
  losses_.assign(count, 0);
  run(shards, [&](Tape& tape, Index shard) {
    Real* block = shards > 1 ? blocks_[static_cast<std::size_t>(shard)].data() : set.grads();
    std::fill_n(block, set.size(), Real{0});
    tape.set_gradient_block(block);
    const Index first = batch.sequences * shard / shards, end = batch.sequences * (shard + 1) / shards;
    tape.training = true;
    tape.observer = nullptr;
    tape.keep_weights = false;
    tape.random = random;
    tape.random.first_sequence = first;
    const Tensor logits = record_logits(tape, model_.net, batch, first, end - first);
    const Tensor loss = record_loss(tape, logits, batch, first, end - first, label_smoothing);
    tape.backward(loss);
    losses_[static_cast<std::size_t>(shard)] = double{loss.item()};
  });
  if (shards > 1)
    for_pieces(set.size(), shards, [&](Index begin, Index end, Index) {
      Real* total = set.grads();
      std::copy(blocks_[0].data() + begin, blocks_[0].data() + end, total + begin);
      for (std::size_t s = 1; s < count; ++s)
        for (Index i = begin; i < end; ++i) total[i] += blocks_[s][static_cast<std::size_t>(i)];
    });
  double loss = 0;
  for (double shard_loss : losses_) loss += shard_loss;
  return loss;
}

namespace {

struct Counts {
  double loss = 0;
  Index tokens = 0, sequences = 0;  // right ones
};

Counts count_right(Tensor logits, const Batch& batch, Index first) {
  Counts right;
  const Index sequences = logits.size(0), length = logits.size(1), vocabulary = logits.size(2);
  const Real* row = logits.value();
  for (Index b = 0; b < sequences; ++b) {
    bool all = true;
    for (Index t = 0; t < length; ++t, row += vocabulary) {
      const std::int32_t target = batch.targets[static_cast<std::size_t>((first + b) * length + t)];
      if (target == Batch::kIgnore) continue;
      // Counted as wrong when anything is as large, so that a row of equal or NaN logits is never right.
      bool is_right = row[target] == row[target];
      for (Index v = 0; v < vocabulary && is_right; ++v) is_right = v == target || row[v] < row[target];
      right.tokens += is_right;
      all &= is_right;
    }
    right.sequences += all;
  }
  return right;
}

}  // namespace

Evaluation Shards::evaluate(const Batch& batch, const TapObserver* observer) {
  constexpr Index kSequencesAPass = 64;  // bounds the memory of a pass
  const Index passes = (batch.sequences + kSequencesAPass - 1) / kSequencesAPass;
  std::vector<Counts> counts(static_cast<std::size_t>(passes));
  run(passes, [&](Tape& tape, Index pass) {
    const Index first = batch.sequences * pass / passes, end = batch.sequences * (pass + 1) / passes;
    tape.training = false;
    tape.observer = observer;
    tape.keep_weights = observer != nullptr;
    NoGrad no_grad(tape);
    const Tensor logits = record_logits(tape, model_.net, batch, first, end - first);
    Counts& right = counts[static_cast<std::size_t>(pass)];
    right = count_right(logits, batch, first);
    right.loss = double{record_loss(tape, logits, batch, first, end - first).item()};
  });
  Counts total;
  for (const Counts& c : counts) {
    total.loss += c.loss;
    total.tokens += c.tokens;
    total.sequences += c.sequences;
  }
  const auto share = [](Index part, Index whole) {
    return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
  };
  return {total.loss, share(total.tokens, batch.counted), share(total.sequences, batch.sequences)};
}

}  // namespace tapehead::inline TAPEHEAD_REAL
