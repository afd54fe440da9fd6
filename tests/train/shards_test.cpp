// A batch cut into shards gives what one tape gives, whatever the sequences count and with the same dropout.
#include "train/shards.h"

#include <gtest/gtest.h>

#include <cmath>

#include "train/config.h"

namespace tapehead {
namespace {

Config small(const std::string& kind, double dropout = 0) {
  Config config = Config::defaults("copy");
  config.data[0].value = 4;  // length
  config.data[1].value = 6;  // symbols
  config.set("model.kind=" + kind);
  config.model.width = 16;
  config.model.dropout = dropout;
  config.model.init_std = 0.3;  // so that attention and gradients are not flat
  return config;
}

struct Case {
  explicit Case(const Config& c)
      : config(c),
        task(make_task(c.task, c.data)),
        model(c.model_for(*task), 1),
        batch(BatchSource(*task, layout_of(c.model.kind), 13, 1).training(1)) {}
  Config config;
  std::unique_ptr<Task> task;
  Model model;
  Batch batch;
};

// Sequence b keeps 1 + b mod 4 of its targets: shards count unequally many.
void thin_out(Batch& batch) {
  batch.counted = 0;
  for (Index b = 0; b < batch.sequences; ++b) {
    Index kept = 0;
    for (Index t = 0; t < batch.target_length; ++t) {
      std::int32_t& target = batch.targets[static_cast<std::size_t>(b * batch.target_length + t)];
      if (target != Batch::kIgnore && kept++ > b % 4) target = Batch::kIgnore;
      batch.counted += target != Batch::kIgnore;
    }
  }
}

struct Pass {
  double loss;
  std::vector<Real> gradient;
};

Pass in_shards(Case& s, int threads, const RandomContext& random = {}) {
  const double loss = Shards(s.model, threads).gradients(s.batch, random, 0);
  return {loss, {s.model.parameters.grads(), s.model.parameters.grads() + s.model.parameters.size()}};
}

Pass on_one_tape(Case& s, const RandomContext& random = {}) {
  s.model.parameters.zero_grad();
  Tape tape(s.model.parameters);
  tape.training = true;
  tape.random = random;
  const Tensor logits = record_logits(tape, s.model.net, s.batch, 0, s.batch.sequences);
  const Tensor loss = record_loss(tape, logits, s.batch, 0, s.batch.sequences);
  tape.backward(loss);
  return {double{loss.item()}, {s.model.parameters.grads(), s.model.parameters.grads() + s.model.parameters.size()}};
}

void expect_equal_to_rounding(const Pass& a, const Pass& b) {
  constexpr double kTolerance = sizeof(Real) == 8 ? 1e-13 : 2e-6;
  EXPECT_NEAR(a.loss, b.loss, kTolerance * 10);
  double largest = 0;
  for (Real g : b.gradient) largest = std::max(largest, std::abs(double{g}));
  ASSERT_GT(largest, 1e-3);
  for (std::size_t i = 0; i < b.gradient.size(); ++i)
    ASSERT_NEAR(a.gradient[i], b.gradient[i], kTolerance * 10 * largest) << i;
}

TEST(Shards, AreSeveralHere) { EXPECT_GT(shard_count(1000, 13, 8), 1); }

TEST(Shards, OfSequencesThatCountUnequallyAddUpToOnePass) {
  for (const char* kind : {"decoder", "encoder", "encoder-decoder"}) {
    Case s(small(kind));
    thin_out(s.batch);
    expect_equal_to_rounding(in_shards(s, 1), on_one_tape(s));
  }
}

TEST(Shards, DrawTheDropoutThatOnePassDraws) {
  for (const char* kind : {"decoder", "encoder-decoder"}) {
    Case s(small(kind, 0.5));
    const RandomContext random{7, 3, 0};
    expect_equal_to_rounding(in_shards(s, 1, random), on_one_tape(s, random));
    EXPECT_NE(in_shards(s, 1, {7, 4, 0}).loss, in_shards(s, 1, random).loss);  // each step draws its own
  }
}

TEST(Shards, GiveTheSameBitsAtAnyNumberOfThreads) {
  Case s(small("decoder", 0.1));
  const Pass one = in_shards(s, 1);
  for (int threads : {2, 3, 8}) {
    const Pass several = in_shards(s, threads);
    EXPECT_EQ(several.loss, one.loss);
    EXPECT_EQ(several.gradient, one.gradient) << threads;
  }
}

TEST(Shards, StartEveryGradientAtZero_F13) {
  Case s(small("decoder"));
  Shards shards(s.model, 2);
  const auto gradient = [&] {
    shards.gradients(s.batch, {}, 0);
    return std::vector<Real>(s.model.parameters.grads(), s.model.parameters.grads() + s.model.parameters.size());
  };
  const std::vector<Real> first = gradient();
  EXPECT_EQ(gradient(), first);
}

TEST(Shards, OfABatchThatCountsNothingGiveNothing_F19) {
  Case s(small("decoder"));
  std::ranges::fill(s.batch.targets, Batch::kIgnore);
  s.batch.counted = 0;
  const Pass pass = in_shards(s, 2);
  EXPECT_EQ(pass.loss, 0);
  for (Real g : pass.gradient) ASSERT_EQ(g, 0);
}

TEST(Evaluation, TurnsDropoutOffAndIsRepeatable_F67) {
  Case with(small("decoder", 0.5)), without(small("decoder"));
  Shards shards(with.model, 2);
  const Evaluation first = shards.evaluate(with.batch), expected = Shards(without.model, 1).evaluate(with.batch);
  shards.gradients(with.batch, {}, 0);
  const Evaluation again = shards.evaluate(with.batch);
  EXPECT_EQ(first.loss, expected.loss);
  EXPECT_EQ(again.loss, expected.loss);
  EXPECT_EQ(again.token_accuracy, expected.token_accuracy);
}

TEST(Evaluation, CountsTokensAndWholeSequences) {
  Case s(small("decoder"));
  // Without positions to tell and with a head of zeros no logit is the largest: nothing is right.
  std::ranges::fill(s.model.parameters.value(s.model.net.head->weight), Real{0});
  Evaluation e = Shards(s.model, 1).evaluate(s.batch);
  EXPECT_EQ(e.token_accuracy, 0);
  EXPECT_EQ(e.exact_match, 0);
  EXPECT_NEAR(e.loss, std::log(7.0), 1e-6);

  // Make the targets what the model says, then make one of them wrong.
  Case other(small("decoder"));
  Tape tape(other.model.parameters);
  const std::vector<Real> logits = record_logits(tape, other.model.net, other.batch, 0, 13).values();
  for (std::size_t row = 0; row < other.batch.targets.size(); ++row)
    if (std::int32_t& target = other.batch.targets[row]; target != Batch::kIgnore)
      target = static_cast<std::int32_t>(std::max_element(logits.begin() + static_cast<std::ptrdiff_t>(row) * 7,
                                                          logits.begin() + static_cast<std::ptrdiff_t>(row + 1) * 7) -
                                         (logits.begin() + static_cast<std::ptrdiff_t>(row) * 7));
  e = Shards(other.model, 1).evaluate(other.batch);
  EXPECT_EQ(e.token_accuracy, 1);
  EXPECT_EQ(e.exact_match, 1);
  other.batch.targets.back() = (other.batch.targets.back() + 1) % 7;
  e = Shards(other.model, 2).evaluate(other.batch);
  EXPECT_EQ(e.token_accuracy, 51.0 / 52);  // 13 sequences of 4 counted tokens
  EXPECT_EQ(e.exact_match, 12.0 / 13);
}

}  // namespace
}  // namespace tapehead
