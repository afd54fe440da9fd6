#include "nn/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "tests/errors.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;
using Tokens = std::vector<std::int32_t>;

ModelConfig small(ModelKind kind) {
  ModelConfig config;
  config.kind = kind;
  config.layers = 1;
  config.width = 8;
  config.heads = 2;
  config.context = 8;
  config.vocabulary = 7;
  config.init_std = 0.5;
  return config;
}

// Reads nothing but the last token: says the next number of 0 .. 6. Its table is the identity, its head a shift.
Model counter() {
  ModelConfig config = small(ModelKind::decoder);
  config.positions = PositionKind::none;
  config.tie_embeddings = false;
  Model model(config, 1);
  for (const NamedParameter& p : unique_parameters(model.net))
    if (p.name.starts_with("blocks.0.attn.o") || p.name.starts_with("blocks.0.mlp.proj"))
      std::ranges::fill(model.parameters.value(p.parameter), Real{0});
  for (const auto& [p, shift] : {std::pair(model.net.tokens.weight, 0), std::pair(model.net.head->weight, 6)})
    for (std::size_t v = 0; v < 7; ++v)
      for (std::size_t c = 0; c < 8; ++c)
        model.parameters.value(p)[v * 8 + c] = c == (v + static_cast<std::size_t>(shift)) % 7 ? 1 : 0;
  return model;
}

Tokens said(Model& model, const Tokens& prompt, const Tokens& source, Index count) {
  return generate(model, prompt, source, count).tokens;
}

TEST(GenerateGreedy, FeedsWhatWasSaidBackIn) {
  Model model = counter();
  EXPECT_EQ(said(model, {2}, {}, 6), (Tokens{3, 4, 5, 6, 0, 1}));
  EXPECT_EQ(said(model, {0, 0, 4}, {}, 2), (Tokens{5, 6}));
  EXPECT_EQ(said(model, {2}, {}, 0), Tokens{});
}

TEST(GenerateGreedy, SaysTheFirstOfEquallyLikelyTokens) {
  Model model = counter();
  std::ranges::fill(model.parameters.value(model.net.head->weight), Real{0});
  EXPECT_EQ(said(model, {3}, {}, 2), (Tokens{0, 0}));
}

TEST(GenerateGreedy, OfAnEncoderDecoderReadsTheSource) {
  ModelConfig config = small(ModelKind::encoder_decoder);
  config.tie_embeddings = false;
  config.init_std = 1;
  Model model(config, 2);  // not every draw of weights lets the source decide
  std::set<Tokens> answers;
  for (std::int32_t token = 0; token < 7; ++token) answers.insert(said(model, {6}, {token, 1, token}, 6));
  EXPECT_GT(answers.size(), 1u);
}

TEST(GenerateGreedy, RefusesAnEmptyPrompt) {
  Model decoder = counter(), both(small(ModelKind::encoder_decoder), 1);
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { said(decoder, {}, {}, 1); }), "empty"));
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { said(both, {1}, {}, 1); }), "empty"));
}

TEST(Generate, SlidesBeyondTheContextAndSaysSo_F57) {
  Model model = counter();  // its context is 8 tokens
  const Generated all_seen = generate(model, {2}, {}, 8), slid = generate(model, {2}, {}, 20);
  EXPECT_EQ(all_seen.forgotten, 0);  // the last token said is never read
  EXPECT_EQ(slid.tokens.size(), 20u);
  EXPECT_EQ(slid.forgotten, 12);  // 20 tokens were read before the last one was said
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(slid.tokens[i], static_cast<std::int32_t>((3 + i) % 7));
  EXPECT_EQ(generate(model, Tokens(9, 1), {}, 1).forgotten, 1);
}

// With any kind of positions, the step beyond the context says what the model says of its last tokens alone.
TEST(Generate, SlidesTheWindowAnew_F57) {
  for (const auto kind : {PositionKind::learned, PositionKind::rope, PositionKind::alibi}) {
    ModelConfig config = small(ModelKind::decoder);
    config.positions = kind;
    config.init_std = 1;
    Model model(config, 3);
    Tokens prompt = {1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4};
    const std::int32_t next = generate(model, prompt, {}, 1).tokens[0];
    EXPECT_EQ(generate(model, Tokens(prompt.end() - 8, prompt.end()), {}, 1).tokens[0], next);
  }
}

TEST(Generate, RefusesASourceBeyondTheContext_F57) {
  Model both(small(ModelKind::encoder_decoder), 1);
  const std::string message = error_of<ConfigError>([&] { generate(both, {1}, Tokens(9, 1), 1); });
  EXPECT_TRUE(contains(message, "9 tokens") && contains(message, "trained with 8")) << message;
}

TEST(Generate, StopsAfterTheStopToken) {
  Model model = counter();
  EXPECT_EQ(generate(model, {2}, {}, 6, {.stop = 4}).tokens, (Tokens{3, 4}));
}

TEST(Generate, RefusesOptionsOutOfRange_F59) {
  Model model = counter();
  const auto refusal = [&](const Sampling& s) {
    return error_of<ConfigError>([&] { generate(model, {1}, {}, 1, s); });
  };
  EXPECT_TRUE(contains(refusal({.temperature = -1}), "temperature is -1"));
  EXPECT_TRUE(contains(refusal({.temperature = std::numeric_limits<double>::quiet_NaN()}), "temperature"));
  EXPECT_TRUE(contains(refusal({.top_k = -1}), "top-k is -1"));
  EXPECT_TRUE(contains(refusal({.top_p = 0}), "top-p is 0"));
  EXPECT_TRUE(contains(refusal({.top_p = 1.5}), "top-p is 1.5"));
}

// Shares of how often uniforms spread evenly over [0, 1) draw each token.
std::vector<double> frequencies(const std::vector<Real>& logits, const Sampling& sampling) {
  constexpr int kDraws = 20000;
  std::vector<double> shares(logits.size());
  for (int i = 0; i < kDraws; ++i)
    shares[static_cast<std::size_t>(draw_token(logits, sampling, (i + 0.5) / kDraws))] += 1.0 / kDraws;
  return shares;
}

TEST(DrawToken, FollowsTheDistributionThatIsLeft) {
  // Shares 0.5, 0.25, 0.125, 0.125 at temperature 1.
  const std::vector<Real> logits = {static_cast<Real>(std::log(0.25)), static_cast<Real>(std::log(0.5)),
                                    static_cast<Real>(std::log(0.125)), static_cast<Real>(std::log(0.125))};
  const auto expect = [&](const Sampling& sampling, const std::vector<double>& shares) {
    const std::vector<double> drawn = frequencies(logits, sampling);
    for (std::size_t v = 0; v < shares.size(); ++v) EXPECT_NEAR(drawn[v], shares[v], 2e-4) << v;
  };
  expect({.temperature = 1}, {0.25, 0.5, 0.125, 0.125});
  expect({.temperature = 0.5}, {4.0 / 22, 16.0 / 22, 1.0 / 22, 1.0 / 22});  // squares of the shares
  expect({.temperature = 1, .top_k = 2}, {1.0 / 3, 2.0 / 3, 0, 0});
  expect({.temperature = 1, .top_k = 100}, {0.25, 0.5, 0.125, 0.125});  // more than there are: all (F59)
  expect({.temperature = 1, .top_p = 0.6}, {1.0 / 3, 2.0 / 3, 0, 0});   // the fewest that hold 0.6
  expect({.temperature = 1, .top_p = 0.5}, {0, 1, 0, 0});
  expect({.temperature = 0}, {0, 1, 0, 0});     // F59
  expect({.temperature = 1e-8}, {0, 1, 0, 0});  // F59
}

// One token at a time from kept keys and values, against the whole sequence in one pass, at every length.
void compare_incremental(const ModelConfig& config) {
  Model model(config, 5);
  const Tokens tokens = {1, 5, 2, 0, 6, 3, 3, 4}, source = {2, 6, 1};
  const bool encodes = config.kind == ModelKind::encoder_decoder;
  Tape tape(model.parameters), step_tape(model.parameters);
  NoGrad no_grad(tape);
  const auto ids = [&](Tape& t, const Tokens& all, std::size_t from, std::size_t count) {
    return t.ids({1, static_cast<Index>(count)}, std::span(all).subspan(from, count));
  };
  const std::vector<Real> whole =
      model.net(ids(tape, tokens, 0, 8), encodes ? ids(tape, source, 0, 3) : Ids{}).values();
  for (const std::size_t first : {std::size_t{1}, std::size_t{3}}) {  // tokens of the first step
    Past past;
    for (std::size_t at = 0, count = first; at < 8; at += count, count = 1) {
      step_tape.reset();
      NoGrad none(step_tape);
      const std::vector<Real> logits =
          model.net(ids(step_tape, tokens, at, count), encodes ? ids(step_tape, source, 0, 3) : Ids{}, &past).values();
      for (std::size_t i = 0; i < logits.size(); ++i)
        EXPECT_NEAR(logits[i], whole[at * 7 + i], sizeof(Real) == 8 ? 1e-12 : 2e-4) << "token " << at;
    }
  }
}

TEST(Past, GivesTheLogitsOfTheWholePass_F05) {
  for (const ModelKind kind : {ModelKind::decoder, ModelKind::encoder_decoder})
    for (const PositionKind positions : {PositionKind::learned, PositionKind::sinusoidal, PositionKind::rope,
                                         PositionKind::alibi, PositionKind::none}) {
      SCOPED_TRACE(static_cast<int>(positions));
      ModelConfig config = small(kind);
      config.layers = 2;
      config.heads = 4;
      config.key_width = 6;
      config.positions = positions;
      compare_incremental(config);
      config.kv_heads = 2;
      config.window = 3;
      config.softcap = 2;
      compare_incremental(config);
      config.scoring = ScoringKind::cosine;
      compare_incremental(config);
      if (positions == PositionKind::rope) continue;
      config.scoring = ScoringKind::additive;
      compare_incremental(config);
    }
}

TEST(GenerateGreedy, RefusesATokenOutsideTheVocabulary_F53) {
  Model model = counter();
  EXPECT_TRUE(contains(error_of<ShapeError>([&] { said(model, {7}, {}, 1); }), "7"));
}

TEST(GenerateGreedy, TakesLogitsThatAreNoNumbersForAnError_F59) {
  for (Real bad : {std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::infinity()}) {
    Model model = counter();
    model.parameters.value(model.net.head->weight)[10] = bad;
    EXPECT_TRUE(contains(error_of<Error>([&] { said(model, {1}, {}, 1); }), "not finite")) << bad;
  }
}

}  // namespace
}  // namespace tapehead
