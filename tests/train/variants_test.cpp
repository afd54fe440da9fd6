// Every variant of attention, of blocks and of models learns a task; docs/attention.md has the same table.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/allocations.h"
#include "tests/errors.h"
#include "train/files.h"
#include "train/trainer.h"

namespace tapehead {
namespace {

struct Variant {
  const char* name;
  std::vector<const char*> settings;
  const char* defined_by;  // the test of its defining property
  const char* task = "copy";
  std::int64_t steps = 300;  // within which it has learned
};

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"dot product", {}, "Attention.EqualsThreeLoopsForEveryMixOfSmallSizes_F07"},
      {"additive scores", {"model.scoring=additive"}, "Scoring.ByAdditionIsBahdanausFormula"},
      {"cosine scores, learned scale", {"model.scoring=cosine"}, "Scoring.ByCosineIsScaledByALearnedNumber"},
      {"capped scores", {"model.softcap=10"}, "Ops.ComputeTheValueOfTheReference"},
      {"temperature", {"model.temperature=2"}, "Ops.ComputeTheValueOfTheReference"},
      {"scores not divided by sqrt(D)", {"model.scale=1"}, "MultiHeadAttention.TakesAScaleOfItsOwn"},
      {"window", {"model.window=12"}, "Mask.WindowReachesBothWaysUnlessCausal"},
      {"W_K is W_Q", {"model.share=q=k"}, "SharedMatrices.OfQueriesAndKeysAddTheirGradients"},
      {"W_V is W_K", {"model.share=k=v"}, "SharedMatrices.OfKeysValuesAndOutputAddTheirGradients"},
      {"W_O is W_V", {"model.share=v=o"}, "SharedMatrices.OfKeysValuesAndOutputAddTheirGradients"},
      {"W_O is W_Q transposed",
       {"model.share=o=qT"},
       "SharedMatrices.OfTheOutputAndTheTransposedQueriesAddTheirGradients"},
      {"W_K is a times W_Q", {"model.share=k=aq"}, "SharedMatrices.OfQueriesAndScaledKeysLearnTheScale"},
      {"one matrix for all heads", {"model.share=heads"}, "SharedMatrices.OfAllHeadsAddTheirGradients"},
      {"one attention for all layers",
       {"model.layers=2", "model.share=layers"},
       "Variants.OfSharedLayersStoreTheirMatricesOnce"},
      {"low rank", {"model.rank=16"}, "SharedMatrices.OfLowRankAreTheirProduct"},
      {"embedding tied to the head", {"model.tie_embeddings=true"}, "GoldenModels.DecoderGivesTheNumbersOfPyTorch"},
      {"grouped heads", {"model.heads=4", "model.kv_heads=2"}, "Heads.OfAGroupShareKeysAndValues"},
      {"one head of keys and values", {"model.heads=4", "model.kv_heads=1"}, "Heads.OfAGroupShareKeysAndValues"},
      {"widths of keys and values",
       {"model.key_width=8", "model.value_width=24"},
       "Heads.OfTheirOwnWidthsHaveMatricesToMatch"},
      {"heads by layer", {"model.layers=2", "model.layer.1.heads=4"}, "Config.OneLayerMayDiffer"},
      {"learned positions", {"model.positions=learned"}, "Positions.AreAddedToEachSequenceAlike"},
      {"sinusoidal positions", {"model.positions=sinusoidal"}, "Positions.SinusoidalFollowTheFormula", "copy", 600},
      {"rotary positions", {"model.positions=rope"}, "Positions.RotaryScoresDependOnTheDistanceAlone"},
      {"rotary positions, half of the channels",
       {"model.positions=rope", "model.rope_fraction=0.5"},
       "Positions.RotaryScoresDependOnTheDistanceAlone"},
      {"ALiBi", {"model.positions=alibi"}, "Positions.AlibiSlopesAreThePublishedOnes", "lookup"},
      {"no positions", {"model.positions=none"}, "OneSetOfWeights.ServesAllPositions", "lookup"},
      {"post-norm", {"model.norm_order=post"}, "GoldenModules.GiveTheNumbersOfPyTorch"},
      {"RMS norm", {"model.norm=rms"}, "GoldenModules.GiveTheNumbersOfPyTorch"},
      {"no norm", {"model.norm=none"}, "GoldenModules.GiveTheNumbersOfPyTorch", "copy", 500},
      {"ReLU", {"model.activation=relu"}, "GoldenModules.GiveTheNumbersOfPyTorch"},
      {"SiLU", {"model.activation=silu"}, "Ops.ComputeTheValueOfTheReference"},
      {"SwiGLU", {"model.activation=swiglu"}, "GoldenModules.GiveTheNumbersOfPyTorch"},
      {"attention alone", {"model.feed_forward=-1"}, "GoldenModules.GiveTheNumbersOfPyTorch"},
      {"no biases", {"model.bias=false"}, "GoldenModules.GiveTheNumbersOfPyTorch"},
      {"dropout", {"model.dropout=0.1"}, "Ops.ComputeTheValueOfTheReference"},
      {"encoder", {"model.kind=encoder"}, "GoldenModels.EncoderGivesTheNumbersOfPyTorch"},
      {"encoder-decoder", {"model.kind=encoder-decoder"}, "GoldenModels.EncoderDecoderGivesTheNumbersOfPyTorch"}};
  return all;
}

/// What one call is given, and no model is trained with: the tasks' sequences are equally long.
const std::vector<std::pair<const char*, const char*>>& variants_of_a_call() {
  static const std::vector<std::pair<const char*, const char*>> all = {
      {"`Mask::padding`, `Mask::allow`, joined by `&`", "Ops.ComputeTheValueOfTheReference"},
      {"additive `bias` with a gradient", "Ops.ComputeTheValueOfTheReference"},
      {"heads pruned by `head_mask`", "Heads.ArePrunedByTheirMask"}};
  return all;
}

Config config_of(const Variant& variant) {
  Config config = Config::defaults(variant.task);
  for (const char* setting : variant.settings) config.set(setting);
  return config;
}

std::string table() {
  std::string text = "| variant | settings | learns | within steps | test of its definition |\n|---|---|---|---|---|\n";
  for (const Variant& v : variants()) {
    std::string settings;
    for (const char* setting : v.settings) settings += (settings.empty() ? "`" : "` `") + std::string(setting);
    text += std::string("| ") + v.name + " | " + (settings.empty() ? "defaults" : settings + '`') + " | " + v.task +
            " | " + std::to_string(v.steps) + " | `" + v.defined_by + "` |\n";
  }
  for (const auto& [name, test] : variants_of_a_call())
    text += std::string("| ") + name + " | of a call | not trained | - | `" + test + "` |\n";
  return text;
}

// The table stands between two marks of the page; TAPEHEAD_WRITE_DOCS=1 writes it.
TEST(Variants, AreListedOnThePage) {
  const std::string path = TAPEHEAD_SOURCE_DIR "/docs/attention.md", begin = "<!-- variants -->\n",
                    end = "<!-- end of variants -->\n";
  const std::string page = read_file(path);
  const std::size_t first = page.find(begin) + begin.size(), last = page.find(end);
  ASSERT_NE(last, std::string::npos);
  if (std::getenv("TAPEHEAD_WRITE_DOCS"))
    write_file_atomically(path, page.substr(0, first) + table() + page.substr(last));
  EXPECT_EQ(page.substr(first, last - first), table()) << "run this test with TAPEHEAD_WRITE_DOCS=1";
}

// Every test that the table names is there.
TEST(Variants, NameTestsThatExist) {
  std::string sources;
  for (const char* file :
       {"autograd/attention_test.cpp", "autograd/mask_test.cpp", "autograd/op_test.cpp", "golden_nn_test.cpp",
        "nn/model_test.cpp", "nn/multi_head_attention_test.cpp", "nn/positions_test.cpp", "nn/shared_matrices_test.cpp",
        "train/config_test.cpp", "train/variants_test.cpp"})
    sources += read_file(std::string(TAPEHEAD_SOURCE_DIR "/tests/") + file);
  std::vector<std::string> names;
  for (const Variant& v : variants()) names.emplace_back(v.defined_by);
  for (const auto& [_, test] : variants_of_a_call()) names.emplace_back(test);
  for (const std::string& name : names) {
    const std::size_t dot = name.find('.');
    const std::string head = '(' + name.substr(0, dot) + ", " + name.substr(dot + 1) + ')';
    EXPECT_TRUE(test::contains(sources, head)) << name;
  }
}

TEST(Variants, OfSharedLayersStoreTheirMatricesOnce) {
  Config config = Config::defaults("copy");
  config.set("model.layers=3");
  const std::int64_t separate = parameter_count(Trainer(config, 1).model().net);
  config.set("model.share=layers");
  Trainer trainer(config, 1);
  const std::int64_t attention = 4 * (64 * 64 + 64);
  EXPECT_EQ(parameter_count(trainer.model().net), separate - 2 * attention);
  for (int i = 0; i < 3; ++i) trainer.step();
  const CheckpointFile file = trainer.checkpoint();
  for (const StoredTensor& tensor : file.parameters)
    EXPECT_FALSE(test::contains(tensor.name, "blocks.1.attn")) << tensor.name;
  // Loaded, the layers still read one matrix.
  Trainer again(config, 1);
  again.load(file, "file");
  const Stack& stack = again.model().net.stack;
  EXPECT_EQ(stack.blocks[2].attn.q.weight, stack.blocks[0].attn.q.weight);
  trainer.step(), again.step();
  const auto numbers = [](Trainer& t) {
    return t.model().parameters.value(t.model().net.stack.blocks[0].attn.k.weight);
  };
  EXPECT_TRUE(std::ranges::equal(numbers(trainer), numbers(again)));
}

TEST(Variants, AllocateNothingInASteadyStep) {
  if (!test::AllocationCounter::available()) GTEST_SKIP() << "the sanitizer owns the allocator";
  for (const Variant& variant : variants()) {
    Config config = config_of(variant);
    config.set("train.batch=4");
    Trainer trainer(config, 1);
    for (int i = 0; i < 2; ++i) trainer.step();
    test::AllocationCounter counter;
    trainer.step();
    EXPECT_EQ(counter.stop(), 0) << variant.name << ": " << counter.first();
  }
}

class EveryVariant : public testing::TestWithParam<std::size_t> {};

TEST_P(EveryVariant, Learns) {
  const Variant& variant = variants()[GetParam()];
  SCOPED_TRACE(variant.name);
  Trainer trainer(config_of(variant), 1);
  double exact = 0;
  while (exact < 1 && static_cast<std::int64_t>(trainer.steps_done()) < variant.steps) {
    for (int i = 0; i < 25; ++i) trainer.step();
    exact = trainer.evaluate().exact_match;
  }
  EXPECT_EQ(exact, 1) << "after " << trainer.steps_done() << " steps";
}

INSTANTIATE_TEST_SUITE_P(Slow, EveryVariant, testing::Range(std::size_t{0}, variants().size()));

}  // namespace
}  // namespace tapehead
