// Interventions and evidence on small models with random weights, against naive sums.
#include "train/interventions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/errors.h"
#include "train/config.h"
#include "train/evidence.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;

struct Small {
  explicit Small(const char* kind = "decoder") {
    config.set(std::string("model.kind=") + kind);
    for (const char* setting :
         {"data.length=4", "data.symbols=6", "model.layers=2", "model.width=16", "model.heads=2", "model.init_std=0.3"})
      config.set(setting);
    task = make_task(config.task, config.data);
    model.emplace(config.model_for(*task), 5);
    batch = BatchSource(*task, layout_of(config.model.kind), 1, 1).held_out(6, 1);
  }
  // Logits of all sequences, with an observer or none.
  std::vector<Real> logits(const TapObserver* observer) {
    Tape tape(model->parameters);
    NoGrad no_grad(tape);
    tape.keep_weights = true;
    tape.observer = observer;
    return record_logits(tape, model->net, batch, 0, batch.sequences).values();
  }
  Config config = Config::defaults("copy");
  std::unique_ptr<Task> task;
  std::optional<Model> model;
  Batch batch;
};

void expect_near(const std::vector<Real>& a, const std::vector<Real>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << i;
}

const HeadPlace kHead{{"decoder", 1}, 1};
constexpr double kTight = sizeof(Real) == 4 ? 1e-5 : 1e-12;

TEST(Interventions, ThatChangeNothingChangeNothing) {
  Small s;
  const Interventions none(s.model->net);
  EXPECT_EQ(s.logits(&none), s.logits(nullptr));
}

TEST(Interventions, OfAHeadWhoseOutputMatrixIsZeroChangeNothing) {
  Small s;
  const Parameter o = s.model->net.stack.blocks[1].attn.o.weight;  // [C, H D]
  for (Index c = 0; c < 16; ++c)
    for (Index i = 8; i < 16; ++i) s.model->parameters.value(o)[static_cast<std::size_t>(c * 16 + i)] = 0;
  Interventions zero(s.model->net);
  zero.zero(kHead);
  expect_near(s.logits(&zero), s.logits(nullptr), kTight);
}

TEST(Interventions, ZeroIsWhatAZeroOutputMatrixDoes) {
  Small s;
  Interventions zero(s.model->net);
  zero.zero(kHead);
  const std::vector<Real> ablated = s.logits(&zero);
  const std::vector<Real> before = s.logits(nullptr);
  const Parameter o = s.model->net.stack.blocks[1].attn.o.weight;
  for (Index c = 0; c < 16; ++c)
    for (Index i = 8; i < 16; ++i) s.model->parameters.value(o)[static_cast<std::size_t>(c * 16 + i)] = 0;
  expect_near(ablated, s.logits(nullptr), kTight);
  EXPECT_NE(ablated, before);
}

TEST(Interventions, AMeanOverOneSequenceIsItself) {
  Small s;
  s.batch = BatchSource(*s.task, layout_of(s.config.model.kind), 1, 1).held_out(1, 1);
  const std::vector<Real> plain = s.logits(nullptr);
  for (const HeadAverage& average : average_heads(*s.model, s.batch)) {
    Interventions mean(s.model->net), pattern(s.model->net);
    mean.replace(average.place, average.output);
    pattern.fix_pattern(average.place, average.weights);
    expect_near(s.logits(&mean), plain, kTight);
    expect_near(s.logits(&pattern), plain, kTight);
  }
}

// Masking a cell by hand: the row without it, scaled up to 1.
TEST(Interventions, KnockOutMasksOneCell) {
  Small s;
  s.batch = BatchSource(*s.task, layout_of(s.config.model.kind), 1, 1).held_out(1, 1);
  std::vector<Real> weights;
  for (const HeadAverage& a : average_heads(*s.model, s.batch))
    if (a.place == kHead) weights = a.weights;
  const Index T = s.batch.target_length, query = 5, key = 2;
  Real* row = weights.data() + query * T;
  const Real rest = 1 - row[key];
  row[key] = 0;
  for (Index j = 0; j < T; ++j) row[j] /= rest;
  Interventions by_hand(s.model->net), knocked(s.model->net);
  by_hand.fix_pattern(kHead, weights);
  knocked.knock_out(kHead, query, key);
  expect_near(s.logits(&knocked), s.logits(&by_hand), kTight);
  Interventions first(s.model->net), outside(s.model->net);
  first.knock_out(kHead, 0, 0);
  outside.knock_out(kHead, 99, 0);
  EXPECT_TRUE(contains(error_of<ShapeError>([&] { s.logits(&first); }), "all of the query's weight"));
  EXPECT_TRUE(contains(error_of<ShapeError>([&] { s.logits(&outside); }), "no cell 99, 0"));
}

// Of every cell, the loss with it masked less the loss of the whole; none of a cell that holds all of its row.
TEST(Evidence, KnockOutsAreWhatInterventionsSay) {
  Small s;
  s.batch = BatchSource(*s.task, layout_of(s.config.model.kind), 1, 1).held_out(1, 1);
  const std::vector<std::vector<float>> all = knock_outs(*s.model, s.batch, 0);
  const std::vector<HeadPlace> heads = heads_of(s.model->net);
  ASSERT_EQ(all.size(), heads.size());
  const auto at = static_cast<std::size_t>(std::ranges::find(heads, kHead) - heads.begin());
  const Index T = s.batch.target_length, query = T - 1, key = 2;
  const auto cell = [&](Index q, Index k) { return double{all[at][static_cast<std::size_t>(q * T + k)]}; };
  Interventions change(s.model->net);
  change.knock_out(kHead, query, key);
  Shards shards(*s.model, 1);
  EXPECT_NEAR(cell(query, key), shards.evaluate(s.batch, &change).loss - shards.evaluate(s.batch).loss, 1e-5);
  EXPECT_NE(cell(query, key), 0);
  EXPECT_TRUE(std::isnan(cell(0, 0)));  // the first row's one key
  EXPECT_TRUE(std::isnan(cell(2, 3)));  // masked
}

// One layer without a feed-forward part: where both sequences have the same token, heads are all that tells them apart.
struct Pair : Small {
  Pair() {
    for (const char* setting : {"model.layers=1", "model.feed_forward=-1"}) config.set(setting);
    model.emplace(config.model_for(*task), 5);
    clean = of({0, 1, 2, 3});
    corrupt = of({4, 1, 2, 3});  // differs in its first answer alone, which the separator's row gives
  }
  Batch of(std::vector<std::int32_t> source) const {
    Example example{std::move(source), {}, {}};
    task->answer(example);
    Batch one;
    lay_out(*task, {example}, layout_of(config.model.kind), one);
    return one;
  }
  double difference(const Batch& run_on) {  // m
    batch = run_on;
    const std::vector<Real> all = logits(nullptr);
    const auto V = static_cast<std::size_t>(model->config.vocabulary);
    for (std::size_t t = 0; t < clean.targets.size(); ++t)
      if (clean.targets[t] != corrupt.targets[t])
        return double{all[t * V + static_cast<std::size_t>(clean.targets[t])]} -
               double{all[t * V + static_cast<std::size_t>(corrupt.targets[t])]};
    return 0;
  }
  Batch clean, corrupt;
};

TEST(Patching, AHeadThatCarriesEverythingRecoversAll) {
  Pair s;
  const Parameter o = s.model->net.stack.blocks[0].attn.o.weight;  // [C, H D]: nothing of head 1
  for (Index c = 0; c < 16; ++c)
    for (Index i = 8; i < 16; ++i) s.model->parameters.value(o)[static_cast<std::size_t>(c * 16 + i)] = 0;
  const std::optional<Patching> p = patch_heads(*s.model, s.clean, s.corrupt);
  ASSERT_TRUE(p);
  EXPECT_NEAR(p->clean, s.difference(s.clean), kTight);
  EXPECT_NEAR(p->corrupt, s.difference(s.corrupt), kTight);
  ASSERT_EQ(p->recovered.size(), 2u);
  EXPECT_NEAR(p->recovered[0], 1, 10 * kTight);
  EXPECT_NEAR(p->recovered[1], 0, 10 * kTight);
}

TEST(Patching, TakesTheOutputOfTheCleanSequence) {
  Pair s;
  const std::optional<Patching> p = patch_heads(*s.model, s.clean, s.corrupt);
  ASSERT_TRUE(p);
  Interventions put(s.model->net);
  for (const HeadAverage& average : average_heads(*s.model, s.clean))
    if (average.place.head == 1) put.replace(average.place, average.output);
  s.batch = s.corrupt;
  const std::vector<Real> all = s.logits(&put);
  const auto V = static_cast<std::size_t>(s.model->config.vocabulary);
  const std::size_t t = 4;  // of the separator
  const double m = double{all[t * V]} - double{all[t * V + 4]};
  EXPECT_NEAR(p->recovered[1], (m - s.difference(s.corrupt)) / (s.difference(s.clean) - s.difference(s.corrupt)), 1e-4);
}

TEST(Patching, RefusesWhatCannotBeCompared) {
  Pair s;
  EXPECT_FALSE(patch_heads(*s.model, s.clean, s.clean));
  Batch longer = s.corrupt;
  ++longer.target_length;
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { patch_heads(*s.model, s.clean, longer); }),
                       "differ in length: 8 tokens and 9"));
}

// The names that TransformerLens gives these places, layer by layer.
TEST(Taps, AreNamedAsInTransformerLens) {
  Small s;
  Tape tape(s.model->parameters);
  tape.keep_weights = true;
  record_logits(tape, s.model->net, s.batch, 0, 1);
  std::vector<std::string> found, expected;
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.at(i).node();
    if (node.name && std::string_view(node.name).starts_with("hook_") &&
        std::string_view(node.scope).starts_with("blocks"))
      found.push_back(std::string(node.scope) + "." + node.name);
  }
  for (const std::string block : {"blocks.0.", "blocks.1."}) {
    for (const char* name : {"q", "k", "v", "attn_scores", "pattern", "z"})
      expected.push_back(block + "attn.hook_" + name);
    for (const char* name : {"attn_out", "resid_mid", "mlp_out", "resid_post"})
      expected.push_back(block + "hook_" + name);
  }
  std::ranges::sort(found);
  std::ranges::sort(expected);
  EXPECT_EQ(found, expected);
  // What is called the pattern is the softmax of what is called the scores.
  const std::vector<Real> pattern = tape.find("hook_pattern").at(1).values(),
                          scores = tape.find("hook_attn_scores").at(1).values();
  const auto T = static_cast<std::size_t>(s.batch.target_length);
  for (std::size_t row = 0; row < pattern.size() / T; ++row) {
    double sum = 0;
    for (std::size_t j = 0; j < T; ++j) sum += std::exp(double{scores[row * T + j]});
    for (std::size_t j = 0; j < T; ++j)
      EXPECT_NEAR(pattern[row * T + j], std::exp(double{scores[row * T + j]}) / sum, 1e-5) << row << ' ' << j;
  }
}

TEST(Heads, AreNamedAndRead) {
  Small decoder, both("encoder-decoder");
  EXPECT_EQ(parse_head("L1H1", decoder.model->net), kHead);
  EXPECT_EQ(name_of(kHead, decoder.model->net), "L1H1");
  EXPECT_EQ(parse_head("cross:L0H1", both.model->net), (HeadPlace{{"cross", 0}, 1}));
  EXPECT_EQ(heads_of(both.model->net).size(), 12u);
  for (const char* wrong :
       {"", "1", "L1", "L1H", "L1H2", "L2H0", "l1h1", "L1H1x", "L-1H0", "cross:L0H0", "L99999999999H0"})
    EXPECT_FALSE(error_of<ConfigError>([&] { parse_head(wrong, decoder.model->net); }).empty()) << wrong;
}

// dL/dA against differences: the loss when one weight is a little larger, the others as they are.
TEST(Evidence, GradientOfAWeightIsWhatADifferenceSays) {
  Small s;
  s.batch = BatchSource(*s.task, layout_of(s.config.model.kind), 1, 1).held_out(1, 1);
  const auto loss = [&](const HeadPlace& place, const std::vector<Real>& weights) {
    Interventions fixed(s.model->net);
    fixed.fix_pattern(place, weights);
    return Shards(*s.model, 1).evaluate(s.batch, &fixed).loss;
  };
  const std::vector<HeadEvidence> all = evidence(*s.model, s.batch, 0);
  const std::vector<HeadAverage> averages = average_heads(*s.model, s.batch);
  ASSERT_EQ(all.size(), 4u);
  const Real step = sizeof(Real) == 4 ? Real(1e-2) : Real(1e-5);
  for (std::size_t h = 0; h < all.size(); ++h)
    for (const std::size_t cell : {std::size_t{5 * 8 + 1}, std::size_t{7 * 8 + 7}}) {
      std::vector<Real> up = averages[h].weights, down = up;
      up[cell] += step;
      down[cell] -= step;
      const double slope = (loss(all[h].place, up) - loss(all[h].place, down)) / (2 * double{step});
      EXPECT_NEAR(all[h].gradient[cell], slope, 2e-3 * std::max(1.0, std::abs(slope))) << h << ' ' << cell;
    }
}

TEST(Evidence, NormWeightedIsTheLengthOfWhatAHeadAdds) {
  Small s;
  const std::vector<HeadEvidence> all = evidence(*s.model, s.batch, 2);
  const HeadProjections p = projections(*s.model, s.batch, 2)[3];
  const Real* o = s.model->parameters.value(s.model->net.stack.blocks[1].attn.o.weight).data();
  const std::vector<AttentionMap> maps = attention_maps(*s.model, s.batch, 2, s.task->vocabulary().tokens());
  for (std::size_t j = 0; j < 8; ++j) {
    double square = 0;
    for (std::size_t c = 0; c < 16; ++c) {
      double x = 0;
      for (std::size_t i = 0; i < 8; ++i) x += double{o[c * 16 + 8 + i]} * double{p.v[j * 8 + i]};
      square += x * x;
    }
    EXPECT_NEAR(all[3].norm_weighted[7 * 8 + j], double{maps[3].weights[7 * 8 + j]} * std::sqrt(square), 1e-5) << j;
  }
}

// Whatever W_O is made of, what a head adds is its part of o(z): here of one head's z alone.
TEST(Evidence, OfSharedAndLowRankOutputsIsWhatTheModuleDoes) {
  for (const char* setting : {"model.share=o=qT", "model.rank=4", "model.kv_heads=1"}) {
    Small s;
    s.config.set(setting);
    s.model.emplace(s.config.model_for(*s.task), 5);
    const std::vector<HeadEvidence> all = evidence(*s.model, s.batch, 2);
    const HeadProjections p = projections(*s.model, s.batch, 2)[3];
    const auto maps = attention_maps(*s.model, s.batch, 2, s.task->vocabulary().tokens());
    Tape tape(s.model->parameters);
    std::vector<Real> alone(2 * 16);  // nothing, then the value of source 3 in head 1
    for (std::size_t i = 0; i < 8; ++i) alone[16 + 8 + i] = static_cast<Real>(p.v[3 * 8 + i]);
    const auto out = s.model->net.stack.blocks[1].attn.o(tape.input({2, 16}, alone)).values();
    double square = 0;
    for (std::size_t c = 0; c < 16; ++c) square += std::pow(double{out[16 + c]} - double{out[c]}, 2);
    EXPECT_NEAR(all[3].norm_weighted[7 * 8 + 3], double{maps[3].weights[7 * 8 + 3]} * std::sqrt(square), 1e-5)
        << setting;
  }
}

TEST(Evidence, LeavesTheModelAsItWas) {
  Small s;
  s.model->parameters.grads()[3] = 7;
  const std::vector<Real> before = s.logits(nullptr);
  evidence(*s.model, s.batch, 0);
  head_importance(*s.model, s.batch);
  EXPECT_EQ(s.model->parameters.grads()[3], 7);
  EXPECT_EQ(s.logits(nullptr), before);
}

TEST(Importance, OfAHeadWithoutOutputIsZero) {
  Small s;
  const Parameter o = s.model->net.stack.blocks[0].attn.o.weight;
  for (Real& x : s.model->parameters.value(o)) x = 0;
  const std::vector<double> importance = head_importance(*s.model, s.batch);
  ASSERT_EQ(importance.size(), 4u);
  EXPECT_EQ(importance[0], 0);
  EXPECT_EQ(importance[1], 0);
  EXPECT_GT(importance[2], 0);
}

TEST(Projections, MakeTheWeights) {
  Small s("encoder-decoder");
  const std::vector<AttentionMap> maps = attention_maps(*s.model, s.batch, 1, s.task->vocabulary().tokens());
  const std::vector<HeadProjections> all = projections(*s.model, s.batch, 1);
  ASSERT_EQ(all.size(), maps.size());
  for (std::size_t h = 0; h < all.size(); ++h) {
    const HeadProjections& p = all[h];
    const AttentionMap& map = maps[h];
    EXPECT_EQ(p.place.attention.kind, map.kind);
    const auto row = static_cast<std::size_t>(p.T - 1), S = static_cast<std::size_t>(p.S),
               D = static_cast<std::size_t>(p.D);
    std::vector<double> e(S);
    double sum = 0;
    for (std::size_t j = 0; j < S; ++j) {  // the last row sees every key
      double dot = 0;
      for (std::size_t i = 0; i < D; ++i) dot += double{p.q[row * D + i]} * double{p.k[j * D + i]};
      sum += e[j] = std::exp(dot * double{p.scale});
    }
    for (std::size_t j = 0; j < S; ++j) EXPECT_NEAR(e[j] / sum, map.weights[row * S + j], 1e-5) << h << ' ' << j;
  }
}

}  // namespace
}  // namespace tapehead
