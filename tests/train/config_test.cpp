#include "train/config.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/errors.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;
using test::lines_of;

std::string refusal(const std::string& assignment) {
  Config config = Config::defaults("copy");
  const std::string message = error_of<ConfigError>([&] { config.set(assignment); });
  EXPECT_EQ(config, Config::defaults("copy")) << assignment;
  EXPECT_EQ(lines_of(message), 1) << message;
  return message;
}

// What check() says of the copy defaults after some assignments.
std::string contradiction(const std::vector<std::string>& assignments, const std::string& task = "copy") {
  Config config = Config::defaults(task);
  for (const std::string& assignment : assignments) config.set(assignment);
  return error_of<ConfigError>([&] { config.check(); });
}

TEST(Config, DefaultsOfEveryTaskAreSound) {
  for (const TaskEntry& entry : tasks()) Config::defaults(entry.name).check();
  EXPECT_TRUE(contains(error_of<ConfigError>([] { Config::defaults("cpoy"); }), "Did you mean 'copy'?"));
}

TEST(Config, SetsEveryKindOfValue) {
  Config config = Config::defaults("copy");
  config.set("seed=9007199254740991");
  config.set("model.kind=encoder-decoder");
  config.set("model.layers=3");
  config.set("model.tie_embeddings=false");
  config.set("model.positions=sinusoidal");
  config.set("model.norm_order=post");
  config.set("model.activation=relu");
  config.set("train.learning_rate=1e-3");
  config.set("train.clip=2");
  config.set("data.length=7");
  EXPECT_EQ(config.seed, 9007199254740991u);
  EXPECT_EQ(config.model.kind, ModelKind::encoder_decoder);
  EXPECT_EQ(config.model.layers, 3);
  EXPECT_FALSE(config.model.tie_embeddings);
  EXPECT_EQ(config.model.positions, PositionKind::sinusoidal);
  EXPECT_EQ(config.model.norm_order, NormOrder::post);
  EXPECT_EQ(config.model.activation, ActivationKind::relu);
  EXPECT_EQ(config.train.learning_rate, 1e-3);
  EXPECT_EQ(config.train.clip, 2);
  EXPECT_EQ(config.data[0].value, 7);
}

TEST(Config, NamesOfKindsAreThoseOfTheSettings) {
  for (const char* name : {"decoder", "encoder", "encoder-decoder"}) {
    Config config = Config::defaults("copy");
    config.set(std::string("model.kind=") + name);
    EXPECT_EQ(name_of(config.model.kind), name);
  }
}

TEST(Config, SuggestsForAnUnknownKey) {
  EXPECT_EQ(refusal("model.head=2"), "[config] unknown key 'model.head'. Did you mean 'model.heads'?");
  EXPECT_EQ(refusal("train.learning_rat=2"),
            "[config] unknown key 'train.learning_rat'. Did you mean 'train.learning_rate'?");
  EXPECT_EQ(refusal("learning_rat=2"), "[config] unknown key 'learning_rat'. Did you mean 'train.learning_rate'?");
  EXPECT_EQ(refusal("heads=2"), "[config] unknown key 'heads'. Did you mean 'model.heads'?");
  EXPECT_EQ(refusal("model.activaton=relu"),
            "[config] unknown key 'model.activaton'. Did you mean 'model.activation'?");
  EXPECT_EQ(refusal("modle.hads=2"), "[config] unknown key 'modle.hads'. Did you mean 'model.heads'?");
  EXPECT_EQ(refusal("model.learning_rate=2"),
            "[config] unknown key 'model.learning_rate'. Did you mean 'train.learning_rate'?");
  EXPECT_EQ(refusal("model.layer.1.head=2"),
            "[config] unknown key 'model.layer.1.head'. Did you mean 'model.layer.1.heads'?");
  EXPECT_EQ(refusal("model.foo=1"), "[config] unknown key 'model.foo'.");
  EXPECT_EQ(refusal("no=1"), "[config] unknown key 'no'.");
  EXPECT_EQ(refusal("model.heads"), "[config] expected key=value, not 'model.heads'.");
  EXPECT_EQ(refusal("=2"), "[config] unknown key ''.");
  EXPECT_EQ(refusal("a\nb=2"), "[config] unknown key 'a\\x0ab'.");
}

// What nothing implements must not be taken and ignored.
TEST(Config, RefusesSettingsThatDoNothing) {
  for (const char* key : {"model.vocabulary", "model.layer", "model.layer.x.heads"})
    EXPECT_TRUE(contains(refusal(std::string(key) + "=1"), "unknown key")) << key;
  EXPECT_TRUE(contains(refusal("train.optimizer=adam"), "Did you mean 'adamw'?"));
  EXPECT_TRUE(contains(refusal("train.schedule=linear"), "cosine, constant"));
}

TEST(Config, OneLayerMayDiffer) {
  Config config = Config::defaults("copy");
  config.set("model.layers=3");
  config.set("model.layer.1.heads=4");
  config.set("model.layer.1.activation=relu");
  config.set("model.heads=2");
  const LayerConfig first = config.model.layer(0), second = config.model.layer(1);
  EXPECT_EQ(first.heads, 2);
  EXPECT_EQ(first.key_width, 32);
  EXPECT_EQ(second.heads, 4);
  EXPECT_EQ(second.kv_heads, 4);
  EXPECT_EQ(second.key_width, 16);
  EXPECT_EQ(second.activation, ActivationKind::relu);
  EXPECT_EQ(config.model.layer(2).activation, ActivationKind::gelu);
  Config again;
  again.parse_toml(config.to_toml(), "x.toml");
  EXPECT_EQ(again, config);
  config.check();
  EXPECT_EQ(refusal("model.layer.1.head=2"),
            "[config] unknown key 'model.layer.1.head'. Did you mean 'model.layer.1.heads'?");
  EXPECT_EQ(refusal("model.layer.1.heads=0"), "[config] model.layer.1.heads is 0, outside [1, 1024].");
}

TEST(Config, ListsAreTakenFromWordsAndFiles) {
  Config config = Config::defaults("copy");
  config.set("model.share=q=k,heads");
  EXPECT_EQ(config.model.share, (std::vector<std::string>{"q=k", "heads"}));
  config.set("train.freeze=tokens,blocks.0.attn");
  EXPECT_TRUE(contains(config.to_toml(), "share = [\"q=k\", \"heads\"]"));
  Config again;
  again.parse_toml(config.to_toml(), "x.toml");
  EXPECT_EQ(again, config);
  config.set("model.share=");
  EXPECT_TRUE(config.model.share.empty());
  EXPECT_EQ(refusal("model.share=k=q"),
            "[config] model.share holds 'k=q', expected a list of q=k, k=v, v=o, o=qT, k=aq, heads, layers.");
}

TEST(Config, RefusesVariantsThatContradictEachOther) {
  const auto problem = [](std::vector<std::string> settings) {
    Config config = Config::defaults("copy");
    for (const std::string& setting : settings) config.set(setting);
    return error_of<ConfigError>([&] { config.check(); });
  };
  EXPECT_TRUE(
      contains(problem({"model.heads=4", "model.kv_heads=3"}), "model.heads 4 is not divisible by model.kv_heads 3"));
  EXPECT_TRUE(
      contains(problem({"model.heads=4", "model.kv_heads=2", "model.share=q=k"}), "q=k, but kv_heads is not heads"));
  EXPECT_TRUE(contains(problem({"model.value_width=3", "model.share=k=v"}), "k=v, but key_width is not value_width"));
  EXPECT_TRUE(contains(problem({"model.value_width=3", "model.share=v=o"}), "v=o, but heads x value_width"));
  EXPECT_TRUE(contains(problem({"model.share=q=k,k=aq"}), "k=aq, but q=k is there as well"));
  EXPECT_TRUE(contains(problem({"model.layer.5.heads=2"}), "model.layer.5 is set, but model.layers is 1"));
  EXPECT_TRUE(contains(problem({"model.layers=2", "model.layer.1.heads=5"}), "not divisible by model.layer.1.heads 5"));
  EXPECT_TRUE(
      contains(problem({"model.layers=2", "model.layer.1.heads=4", "model.share=layers"}), "layers, but a layer's"));
  EXPECT_TRUE(contains(problem({"model.positions=rope", "model.scoring=additive"}), "turns dot products"));
  EXPECT_TRUE(contains(problem({"model.positions=rope", "model.key_width=1"}), "leaves no pair"));
  Config own_width = Config::defaults("copy");  // heads need not share the model's width
  own_width.set("model.key_width=5");
  own_width.set("model.heads=3");
  own_width.check();
}

TEST(Config, RefusesWhatIsNoSuchValue) {
  EXPECT_EQ(refusal("model.heads="), "[config] model.heads is '', expected a whole number.");
  EXPECT_EQ(refusal("model.heads=two"), "[config] model.heads is 'two', expected a whole number.");
  EXPECT_EQ(refusal("model.heads=2x"), "[config] model.heads is '2x', expected a whole number.");
  EXPECT_EQ(refusal("model.heads= 2"), "[config] model.heads is ' 2', expected a whole number.");
  EXPECT_EQ(refusal("model.heads=2.0"), "[config] model.heads is 2.0, expected a whole number.");
  EXPECT_EQ(refusal("model.heads=99999999999999999999"),
            "[config] model.heads is 99999999999999999999, expected a whole number.");
  EXPECT_EQ(refusal("train.clip=1e999"), "[config] train.clip is '1e999', expected a number.");
  EXPECT_EQ(refusal("train.clip=1,5"), "[config] train.clip is '1,5', expected a number.");
  EXPECT_EQ(refusal("model.bias=1"), "[config] model.bias is '1', expected true or false.");
  EXPECT_EQ(refusal("model.norm_order=middle"), "[config] model.norm_order is 'middle', expected one of pre, post.");
  EXPECT_EQ(refusal("model.kind=encoder_decoder"),
            "[config] model.kind is 'encoder_decoder', expected one of decoder, encoder, encoder-decoder. Did you mean "
            "'encoder-decoder'?");
}

TEST(Config, RefusesWhatIsOutOfRange) {
  EXPECT_EQ(refusal("model.heads=0"), "[config] model.heads is 0, outside [1, 1024].");
  EXPECT_EQ(refusal("model.layers=0"), "[config] model.layers is 0, outside [1, 256].");  // F51
  EXPECT_EQ(refusal("model.dropout=1"), "[config] model.dropout is 1, outside [0, 1).");
  EXPECT_EQ(refusal("model.temperature=0"), "[config] model.temperature is 0, outside [1e-06, 1000000].");
  EXPECT_EQ(refusal("train.learning_rate=nan"), "[config] train.learning_rate is nan, outside (0, 1000].");
  EXPECT_EQ(refusal("train.learning_rate=inf"), "[config] train.learning_rate is inf, outside (0, 1000].");
  EXPECT_EQ(refusal("train.learning_rate=-1e-3"), "[config] train.learning_rate is -1e-3, outside (0, 1000].");
  for (const char* assignment :
       {"seed=-1", "seed=9223372036854775807", "model.width=9223372036854775807", "train.steps=0", "train.batch=0",
        "train.eval_every=0", "train.warmup=-1", "train.beta2=1", "train.eps=0", "train.target=3", "data.length=0",
        "train.weight_decay=-0.1", "train.clip=-1", "train.label_smoothing=1"})
    EXPECT_TRUE(contains(refusal(assignment), ", outside ")) << assignment;
}

TEST(Config, WidthAndHeadsMustFit_F51) {
  EXPECT_EQ(contradiction({"model.width=128", "model.heads=12"}),
            "[config] model.width 128 is not divisible by model.heads 12. Hint: heads share the width equally.");
  EXPECT_EQ(contradiction({"model.width=2", "model.heads=8"}),
            "[config] model.heads 8 is more than model.width 2. Hint: a head needs at least one channel.");
}

TEST(Config, CheckSeesValuesThatNobodySet) {
  Config config = Config::defaults("copy");
  config.model.heads = 0;
  config.model.layers = -1;
  config.train.learning_rate = std::numeric_limits<double>::quiet_NaN();
  config.data[0].value = 0;
  const std::string message = error_of<ConfigError>([&] { config.check(); });
  EXPECT_EQ(lines_of(message), 4) << message;
  EXPECT_TRUE(contains(message, "model.heads is 0, outside [1, 1024]")) << message;
  EXPECT_TRUE(contains(message, "data.length is 0, outside 1 to 256")) << message;
}

TEST(Config, ContextMustHoldTheTasksSequences) {
  EXPECT_TRUE(contains(contradiction({"model.context=19"}), "model.context 19 is too short for copy, which needs 20"));
  EXPECT_TRUE(contains(contradiction({"model.context=9", "model.kind=encoder-decoder"}), "which needs 10"));
  Config config = Config::defaults("copy");
  config.set("model.context=20");
  config.check();
}

TEST(Config, AnEncoderAloneCannotLookUp) {
  EXPECT_TRUE(contains(contradiction({"model.kind=encoder"}, "lookup"), "model.kind is encoder, which cannot learn"));
  Config config = Config::defaults("copy");
  config.set("model.kind=encoder");
  config.check();
}

TEST(Config, CollectsContradictions) {
  const std::string message = contradiction(
      {"model.heads=3", "model.context=1", "train.min_learning_rate=0.5", "data.pairs=4", "data.queries=3"}, "lookup");
  EXPECT_EQ(lines_of(message), 3) << message;
  EXPECT_TRUE(contains(message, "train.min_learning_rate 0.5 is above train.learning_rate 0.002")) << message;
  EXPECT_TRUE(contains(contradiction({"data.pairs=3", "data.queries=4"}, "lookup"), "[lookup] data.queries is 4"));
}

TEST(Config, WarmupAndStepsGoInAnyCombination_F65) {
  for (const char* warmup : {"train.warmup=0", "train.warmup=1", "train.warmup=10"})
    for (const char* steps : {"train.steps=1", "train.steps=10"}) {
      Config config = Config::defaults("copy");
      config.set(warmup);
      config.set(steps);
      config.check();
    }
}

TEST(Config, CompletesTheModelFromTheTask) {
  Config config = Config::defaults("lookup");
  const auto task = make_task("lookup");
  EXPECT_EQ(config.model_for(*task).vocabulary, 187);
  EXPECT_EQ(config.model_for(*task).context, 16);
  config.set("model.kind=encoder-decoder");
  EXPECT_EQ(config.model_for(*task).context, 8);
  config.set("model.context=99");
  EXPECT_EQ(config.model_for(*task).context, 99);
}

}  // namespace
}  // namespace tapehead
