#include "nn/generate.h"

#include <gtest/gtest.h>

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

TEST(GenerateGreedy, FeedsWhatWasSaidBackIn) {
  Model model = counter();
  EXPECT_EQ(generate_greedy(model, {2}, {}, 6), (Tokens{3, 4, 5, 6, 0, 1}));
  EXPECT_EQ(generate_greedy(model, {0, 0, 4}, {}, 2), (Tokens{5, 6}));
  EXPECT_EQ(generate_greedy(model, {2}, {}, 0), Tokens{});
}

TEST(GenerateGreedy, SaysTheFirstOfEquallyLikelyTokens) {
  Model model = counter();
  std::ranges::fill(model.parameters.value(model.net.head->weight), Real{0});
  EXPECT_EQ(generate_greedy(model, {3}, {}, 2), (Tokens{0, 0}));
}

TEST(GenerateGreedy, OfAnEncoderDecoderReadsTheSource) {
  ModelConfig config = small(ModelKind::encoder_decoder);
  config.tie_embeddings = false;
  config.init_std = 1;
  Model model(config, 2);  // not every draw of weights lets the source decide
  std::set<Tokens> said;
  for (std::int32_t token = 0; token < 7; ++token) said.insert(generate_greedy(model, {6}, {token, 1, token}, 6));
  EXPECT_GT(said.size(), 1u);
}

TEST(GenerateGreedy, RefusesAnEmptyPrompt) {
  Model decoder = counter(), both(small(ModelKind::encoder_decoder), 1);
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { generate_greedy(decoder, {}, {}, 1); }), "empty"));
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { generate_greedy(both, {1}, {}, 1); }), "empty"));
}

TEST(GenerateGreedy, RefusesWhatTheContextCannotHold_F57) {
  Model decoder = counter(), both(small(ModelKind::encoder_decoder), 1);
  const auto refusal = [](Model& model, const Tokens& prompt, const Tokens& source, Index count) {
    return error_of<ConfigError>([&] { generate_greedy(model, prompt, source, count); });
  };
  EXPECT_EQ(generate_greedy(decoder, Tokens(8, 1), {}, 1).size(), 1u);  // the last token said is never read
  const std::string message = refusal(decoder, Tokens(9, 1), {}, 1);
  EXPECT_TRUE(contains(message, "9 tokens") && contains(message, "trained with 8")) << message;
  EXPECT_TRUE(contains(refusal(decoder, {1}, {}, 20), "20 tokens"));
  EXPECT_TRUE(contains(refusal(both, {1}, Tokens(9, 1), 1), "9 tokens"));
}

TEST(GenerateGreedy, RefusesATokenOutsideTheVocabulary_F53) {
  Model model = counter();
  EXPECT_TRUE(contains(error_of<ShapeError>([&] { generate_greedy(model, {7}, {}, 1); }), "7"));
}

TEST(GenerateGreedy, TakesLogitsThatAreNoNumbersForAnError_F59) {
  for (Real bad : {std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::infinity()}) {
    Model model = counter();
    model.parameters.value(model.net.head->weight)[10] = bad;
    EXPECT_TRUE(contains(error_of<Error>([&] { generate_greedy(model, {1}, {}, 1); }), "not finite")) << bad;
  }
}

}  // namespace
}  // namespace tapehead
