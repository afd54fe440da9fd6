// Circuits and lenses of small models, against the definitions written out as loops.
#include "train/circuits.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/errors.h"
#include "train/config.h"
#include "train/lens.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;

struct Small {
  explicit Small(const std::vector<std::string>& settings = {}) {
    for (const char* setting :
         {"data.length=4", "data.symbols=6", "model.layers=2", "model.width=16", "model.heads=2", "model.init_std=0.3"})
      config.set(setting);
    for (const std::string& setting : settings) config.set(setting);
    task = make_task(config.task, config.data);
    model.emplace(config.model_for(*task), 5);
    batch = BatchSource(*task, layout_of(config.model.kind), 1, 1).held_out(3, 1);
    rng::Generator random(rng::Stream(7, rng::Purpose::init));  // biases are 0 at first, which would hide a mistake
    for (const NamedParameter& p : unique_parameters(model->net))
      if (p.name.ends_with("bias"))
        for (Real& x : model->parameters.value(p.parameter)) x = static_cast<Real>(random.below(100)) / 100;
  }
  Config config = Config::defaults("copy");
  std::unique_ptr<Task> task;
  std::optional<Model> model;
  Batch batch;
};

TEST(Circuits, AreTheProductsOfTheirMatrices) {
  Small s({"model.tie_embeddings=false"});
  const Transformer& net = s.model->net;
  const ParameterSet& set = s.model->parameters;
  const auto at = [&](const Parameter& p, Index row, Index column) {
    return double{set.value(p)[static_cast<std::size_t>(row * p.shape[1] + column)]};
  };
  const MultiHeadAttention& a = net.stack.blocks[1].attn;
  const Circuits c = circuits(*s.model).at(3);  // L1H1: channels 8 to 15
  for (const auto& [row, column] : {std::pair<Index, Index>{0, 0}, {2, 5}, {6, 1}}) {
    double qk = 0, ov = 0;
    for (Index d = 8; d < 16; ++d) {
      double q = 0, k = 0, v = 0, o = 0;
      for (Index i = 0; i < 16; ++i) {
        q += at(net.tokens.weight, row, i) * at(a.q.weight, d, i);
        k += at(net.tokens.weight, column, i) * at(a.k.weight, d, i);
        v += at(net.tokens.weight, row, i) * at(a.v.weight, d, i);
        o += at(a.o.weight, i, d) * at(net.head->weight, column, i);
      }
      qk += q * k / std::sqrt(8);
      ov += v * o;
    }
    const auto cell = static_cast<std::size_t>(row * 7 + column);
    EXPECT_NEAR(c.qk[cell], qk, 1e-5);
    EXPECT_NEAR(c.ov[cell], ov, 1e-5);
  }
}

// With W_V and W_O such that a head gives back what it reads, and a tied head, every eigenvalue is positive.
TEST(Circuits, OfAHeadThatRepeatsItsKeyHaveCopyingOne) {
  Small s({"model.heads=1", "model.tie_embeddings=true"});
  const MultiHeadAttention& a = s.model->net.stack.blocks[0].attn;
  for (const Parameter& p : {a.v.weight, a.o.weight})
    for (Index i = 0; i < 16; ++i)
      for (Index j = 0; j < 16; ++j) s.model->parameters.value(p)[static_cast<std::size_t>(i * 16 + j)] = i == j;
  EXPECT_NEAR(circuits(*s.model)[0].copying, 1, 1e-6);
  for (Real& x : s.model->parameters.value(a.o.weight)) x = -x;
  EXPECT_NEAR(circuits(*s.model)[0].copying, -1, 1e-6);
}

TEST(Circuits, OfALargeVocabularyAreRefused) {
  Small s;
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { circuits(*s.model, 3); }), "7 tokens"));
}

TEST(Compositions, AreOfLaterLayersAndAtMostOne) {
  Small s;
  const auto all = compositions(*s.model);
  ASSERT_EQ(all.size(), 4u);  // two heads of layer 1 read two of layer 0
  for (const Composition& c : all)
    for (const double x : {c.q, c.k, c.v}) EXPECT_TRUE(x > 0 && x <= 1) << x;
}

TEST(LogitLens, EndsWithWhatTheModelSays) {
  Small s;
  const std::vector<LensLayer> layers = logit_lens(*s.model, s.batch, 1);
  ASSERT_EQ(layers.size(), 3u);
  Tape tape(s.model->parameters);
  const std::vector<Real> p = softmax(record_logits(tape, s.model->net, s.batch, 1, 1)).values();
  for (std::size_t t = 0; t < 8; ++t) {
    const std::int32_t target = s.batch.targets[8 + t];
    if (target < 0)
      EXPECT_TRUE(std::isnan(layers[2].probability[t]));
    else
      EXPECT_NEAR(layers[2].probability[t], p[t * 7 + static_cast<std::size_t>(target)], 1e-5);
  }
}

TEST(Attribution, PartsSumToTheLogit) {
  for (const char* kind : {"decoder", "encoder-decoder"}) {
    Small s({std::string("model.kind=") + kind});
    for (const std::int32_t token : {0, 5})
      for (const Index row : {s.batch.target_length - 1, Index{2}}) {
        const Attribution a = attribute_logit(*s.model, s.batch, 1, row, token);
        double sum = 0, lead = 0;
        for (const auto& part : a.parts) sum += part.value, lead += part.lead;
        EXPECT_NEAR(sum, a.logit, 1e-4) << kind << ' ' << token << ' ' << row;
        EXPECT_NEAR(lead, a.lead, 1e-4) << kind << ' ' << token << ' ' << row;
      }
    EXPECT_TRUE(contains(error_of<ConfigError>([&] { attribute_logit(*s.model, s.batch, 0, 99, 0); }), "no row 99"));
  }
}

// The lead is over the largest of the other logits, and every row that counts is attributed to its target.
TEST(Attribution, OfAnswersIsThatOfEachRow) {
  Small s;
  Tape tape(s.model->parameters);
  const std::vector<Real> logits = record_logits(tape, s.model->net, s.batch, 1, 1).values();
  const auto all = attribute_answers(*s.model, s.batch, 1);
  std::size_t next = 0;
  for (Index row = 0; row < 8; ++row) {
    const std::int32_t target = s.batch.targets[static_cast<std::size_t>(8 + row)];
    if (target < 0) continue;
    ASSERT_LT(next, all.size());
    const Attribution &a = all[next++], one = attribute_logit(*s.model, s.batch, 1, row, target);
    EXPECT_EQ(a.row, row);
    EXPECT_EQ(a.token, target);
    Real other = -1e9;
    for (std::int32_t v = 0; v < 7; ++v)
      if (v != target) other = std::max(other, logits[static_cast<std::size_t>(row * 7 + v)]);
    EXPECT_NEAR(a.lead, logits[static_cast<std::size_t>(row * 7 + target)] - other, 1e-5);
    for (std::size_t i = 0; i < a.parts.size(); ++i) EXPECT_EQ(a.parts[i].lead, one.parts[i].lead) << a.parts[i].name;
  }
  EXPECT_EQ(next, all.size());
}

TEST(Attribution, OfPostNormIsRefused) {
  Small s({"model.norm_order=post"});
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { attribute_logit(*s.model, s.batch, 0, 5, 0); }), "pre"));
  EXPECT_TRUE(attribute_answers(*s.model, s.batch, 0).empty());
}

}  // namespace
}  // namespace tapehead
