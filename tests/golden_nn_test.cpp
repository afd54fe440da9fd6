// Modules and whole models give PyTorch's values and gradients (tests/golden/models.py).
#include <gtest/gtest.h>

#include "autograd/error.h"
#include "nn/transformer.h"
#include "tests/golden.h"

namespace tapehead::inline TAPEHEAD_REAL::golden {

namespace {

// --- modules: each row makes one, loads it and runs it

using Make = Tensor (*)(Case&, Initialiser&);

const Mask kCausal = Mask::causal();

template <Index source_width>
MultiHeadAttention attention_of(Case& c, Initialiser& init, bool bias = true) {
  return c.load(MultiHeadAttention::make(init, {.width = 12, .source_width = source_width, .heads = 3, .bias = bias}));
}

constexpr Index kLengthsOfSelf[] = {4, 2}, kLengthsOfCross[] = {3, 5};

Tensor padded_self_attention(Case& c, Initialiser& init) {
  return attention_of<12>(c, init)(c["x"], kCausal & Mask::padding(kLengthsOfSelf));
}
Tensor padded_cross_attention(Case& c, Initialiser& init) {
  return attention_of<20>(c, init)(c["x"], c["source"], Mask::padding(kLengthsOfCross));
}

template <PositionKind kind>
Tensor positioned(Case& c, Initialiser& init) {
  ModelConfig config;
  config.positions = kind;
  config.context = 6;
  config.width = 12;
  return c.load(Positions::make(init, config))(c["x"]);
}

template <NormOrder order, ActivationKind activation = ActivationKind::gelu, auto change = nullptr>
Tensor block_of(Case& c, Initialiser& init) {
  ModelConfig config;
  config.width = 12;
  config.heads = 3;
  config.feed_forward = 20;
  config.norm_order = order;
  config.activation = activation;
  if constexpr (!std::is_null_pointer_v<decltype(change)>) change(config);
  const Tensor memory = c["memory"];
  return c.load(Block::make(init, config, 0, memory.defined(), nullptr))(c["x"], kCausal, memory);
}

template <auto change>
Tensor block_but(Case& c, Initialiser& init) {
  return block_of<NormOrder::pre, ActivationKind::gelu, change>(c, init);
}

Tensor feed_forward_of(Case& c, Initialiser& init) {
  return c.load(FeedForward::make(init, {.width = 12, .inner = 20}))(c["x"]);
}

Tensor gated_feed_forward_of(Case& c, Initialiser& init) {
  const FeedForward::Options options{.width = 12, .inner = 20, .activation = ActivationKind::swiglu};
  return c.load(FeedForward::make(init, options))(c["x"]);
}

const std::map<std::string, Make> kModules = {
    {"linear", [](Case& c, Initialiser& init) { return c.load(Linear::make(init, 12, 5, true, 1))(c["x"]); }},
    {"embedding", [](Case& c, Initialiser& init) { return c.load(Embedding::make(init, 7, 4, 1))(c.ids("x")); }},
    {"layer_norm",
     [](Case& c, Initialiser& init) { return c.load(Norm::make(init, NormKind::layer, 12, true))(c["x"]); }},
    {"feed_forward", feed_forward_of},
    {"positions, learned", positioned<PositionKind::learned>},
    {"positions, sinusoidal", positioned<PositionKind::sinusoidal>},
    {"attention, self", [](Case& c, Initialiser& init) { return attention_of<12>(c, init)(c["x"]); }},
    {"attention, self, causal", [](Case& c, Initialiser& init) { return attention_of<12>(c, init)(c["x"], kCausal); }},
    {"attention, cross", [](Case& c, Initialiser& init) { return attention_of<20>(c, init)(c["x"], c["source"]); }},
    {"block, pre-norm", block_of<NormOrder::pre>},
    {"block, post-norm", block_of<NormOrder::post>},
    {"attention, self, causal, padding", padded_self_attention},
    {"attention, cross, padding", padded_cross_attention},
    {"attention, self, no biases", [](Case& c, Initialiser& init) { return attention_of<12>(c, init, false)(c["x"]); }},
    {"block, pre-norm, relu", block_of<NormOrder::pre, ActivationKind::relu>},
    {"block, post-norm, relu", block_of<NormOrder::post, ActivationKind::relu>},
    {"block, no biases", block_but<[](ModelConfig& m) { m.bias = false; }>},
    {"block, no norm", block_but<[](ModelConfig& m) { m.norm = NormKind::none; }>},
    {"block, attention alone", block_but<[](ModelConfig& m) { m.feed_forward = -1; }>},
    {"rms_norm", [](Case& c, Initialiser& init) { return c.load(Norm::make(init, NormKind::rms, 12, true))(c["x"]); }},
    {"feed_forward, swiglu", gated_feed_forward_of},
    {"block with cross-attention, pre-norm", block_of<NormOrder::pre>},
    {"block with cross-attention, post-norm", block_of<NormOrder::post>},
};

std::string check(const File& file, const std::string& name, Make run) {
  ParameterSet parameters;
  Initialiser init(parameters, 1);
  Tape tape(parameters);
  Case c(file, name, tape);
  try {
    return c.check(run(c, init));
  } catch (const Error& error) {
    return error.what();
  }
}

// --- models

std::string check(const File& file, const std::string& name, const ModelConfig& config) {
  Model model(config, 1);
  Tape tape(model.parameters);
  Case c(file, name, tape);
  try {
    c.load(model.net);
    const Tensor logits = model.net(c.ids("tokens"), c.ids("source"));
    const Tensor loss = cross_entropy(logits, c.ids("targets"));
    return c.check({{"logits", logits}, {"loss", loss}}, loss);
  } catch (const Error& error) {
    return error.what();
  }
}

void check_model(const char* file_name, ModelKind kind) {
  const File file(file_name);
  for (const NormOrder order : {NormOrder::pre, NormOrder::post})
    for (const bool tied : {true, false}) {
      const std::string name =
          std::string(order == NormOrder::pre ? "pre-norm" : "post-norm") + (tied ? ", tied" : ", untied");
      EXPECT_EQ(check(file, name, small_model(kind, order, tied)), "") << name;
    }
}

}  // namespace

TEST(GoldenModules, GiveTheNumbersOfPyTorch) {
  const File file("modules");
  for (const std::string& name : file.cases()) {
    const auto row = kModules.find(name);
    ASSERT_NE(row, kModules.end()) << "no row runs the case " << name;
    EXPECT_EQ(check(file, name, row->second), "") << name;
  }
  EXPECT_EQ(file.cases().size(), kModules.size());
}

TEST(GoldenModels, DecoderGivesTheNumbersOfPyTorch) { check_model("decoder", ModelKind::decoder); }
TEST(GoldenModels, EncoderGivesTheNumbersOfPyTorch) { check_model("encoder", ModelKind::encoder); }
TEST(GoldenModels, EncoderDecoderGivesTheNumbersOfPyTorch) {
  check_model("encoder_decoder", ModelKind::encoder_decoder);
}

// --- the comparison can fail

TEST(GoldenComparison, NoticesAParameterThatWasNotUsed) {
  const auto without_bias = [](Case& c, Initialiser& init) {
    const Linear module = c.load(Linear::make(init, 12, 5, true, 1));
    return Linear{module.weight, {}}(c["x"]);
  };
  EXPECT_NE(check(File("modules"), "linear", without_bias), "");
}

TEST(GoldenComparison, NoticesAnotherModel) {
  const File file("decoder");
  const auto pre = NormOrder::pre, post = NormOrder::post;
  EXPECT_NE(check(file, "pre-norm, tied", small_model(ModelKind::encoder, pre, true)), "");
  EXPECT_NE(check(file, "pre-norm, tied", small_model(ModelKind::decoder, pre, false)), "");
  EXPECT_NE(check(file, "pre-norm, tied", small_model(ModelKind::decoder, post, true)), "");
}

}  // namespace tapehead::inline TAPEHEAD_REAL::golden
