// The three models as structures: names, counts, memory, and that traversal and computation see the same parameters.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "nn/transformer.h"
#include "tests/errors.h"
#include "train/config.h"
#include "train/shards.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;

ModelConfig small(ModelKind kind) {
  ModelConfig config;
  config.kind = kind;
  config.layers = 1;
  config.width = 8;
  config.heads = 2;
  config.feed_forward = 12;
  config.context = 5;
  config.vocabulary = 7;
  return config;
}

constexpr ModelKind kKinds[] = {ModelKind::decoder, ModelKind::encoder, ModelKind::encoder_decoder};

std::vector<std::string> names(const Model& model) {
  std::vector<std::string> list;
  for (const NamedParameter& p : unique_parameters(model.net)) list.push_back(p.name);
  return list;
}

// Logits of some tokens (and of a source, for an encoder-decoder).
Tensor logits_of(Tape& tape, const Model& model, const std::vector<std::int32_t>& tokens) {
  const Ids inputs = tape.ids({1, static_cast<Index>(tokens.size())}, tokens);
  const std::vector<std::int32_t> source = {3, 1, 2};
  return model.net(inputs, model.net.encoder ? tape.ids({1, 3}, source) : Ids{});
}

// --- names and counts

TEST(ModelNames, AreThoseOfTheDecoder) {
  const std::vector<std::string> expected = {"tokens.weight",
                                             "positions.weight",
                                             "blocks.0.norm1.weight",
                                             "blocks.0.norm1.bias",
                                             "blocks.0.attn.q.weight",
                                             "blocks.0.attn.q.bias",
                                             "blocks.0.attn.k.weight",
                                             "blocks.0.attn.k.bias",
                                             "blocks.0.attn.v.weight",
                                             "blocks.0.attn.v.bias",
                                             "blocks.0.attn.o.weight",
                                             "blocks.0.attn.o.bias",
                                             "blocks.0.norm2.weight",
                                             "blocks.0.norm2.bias",
                                             "blocks.0.mlp.fc.weight",
                                             "blocks.0.mlp.fc.bias",
                                             "blocks.0.mlp.proj.weight",
                                             "blocks.0.mlp.proj.bias",
                                             "norm.weight",
                                             "norm.bias"};
  EXPECT_EQ(names(Model(small(ModelKind::decoder), 1)), expected);
  EXPECT_EQ(names(Model(small(ModelKind::encoder), 1)), expected);
}

TEST(ModelNames, OfAnEncoderDecoderTellItsTwoStacksApart) {
  const Model model(small(ModelKind::encoder_decoder), 1);
  std::map<std::string, int> groups;
  for (const std::string& name : names(model)) {
    if (name.starts_with("encoder."))
      ++groups["encoder"];
    else if (name.starts_with("blocks.0.cross."))
      ++groups["cross"];
    else
      ++groups["rest"];
    EXPECT_FALSE(contains(name, "encoder.blocks.0.cross")) << name;
  }
  EXPECT_EQ(groups["cross"], 8);     // q, k, v, o with biases
  EXPECT_EQ(groups["encoder"], 19);  // what a decoder has but its token table
  EXPECT_EQ(groups["rest"], 22);     // a decoder and norm3
}

TEST(ModelNames, OfAnUntiedModelWithoutBiasesHaveAHeadAndNoBias) {
  ModelConfig config = small(ModelKind::decoder);
  config.tie_embeddings = config.bias = false;
  const std::vector<std::string> list = names(Model(config, 1));
  EXPECT_EQ(list.back(), "head.weight");
  for (const std::string& name : list) EXPECT_FALSE(name.ends_with("bias")) << name;
}

TEST(ModelCounts, FollowTheFormula) {
  const Index C = 8, F = 12, V = 7, T = 5, L = 3;
  const auto count = [&](ModelKind kind, bool tied) {
    ModelConfig config = small(kind);
    config.layers = L;
    config.tie_embeddings = tied;
    return parameter_count(Model(config, 1).net);
  };
  const Index attention = 4 * (C * C + C), norm = 2 * C, mlp = (C * F + F) + (F * C + C);
  const Index encoder = T * C + L * (attention + mlp + 2 * norm) + norm;
  const Index decoder = T * C + L * (2 * attention + mlp + 3 * norm) + norm;
  EXPECT_EQ(count(ModelKind::decoder, true), V * C + encoder);  // a tied head is the token table: counted once
  EXPECT_EQ(count(ModelKind::decoder, false), 2 * V * C + encoder);
  EXPECT_EQ(count(ModelKind::encoder, true), V * C + encoder);
  EXPECT_EQ(count(ModelKind::encoder_decoder, true), V * C + encoder + decoder);
}

TEST(ModelCounts, CountASharedModuleOnceAndNameItTwice) {
  Model model(small(ModelKind::decoder), 1);
  const Index before = parameter_count(model.net);
  model.net.stack.blocks.push_back(model.net.stack.blocks[0]);
  EXPECT_EQ(parameter_count(model.net), before);
  std::set<std::string> all;
  for_each_parameter(model.net, [&](const std::string& name, const Parameter&) { all.insert(name); });
  EXPECT_EQ(all.count("blocks.0.attn.q.weight") + all.count("blocks.1.attn.q.weight"), 2u);
}

TEST(ModelCounts, AreWhatTheSummaryAddsUpTo) {
  const Model model(small(ModelKind::decoder), 1);
  const std::string text = summary(model);
  EXPECT_TRUE(contains(text, "blocks.0.mlp.fc.weight")) << text;
  EXPECT_TRUE(contains(text, "[12, 8]")) << text;
  EXPECT_TRUE(contains(text.substr(text.find("\ntotal")), ' ' + std::to_string(parameter_count(model.net)) + '\n'));
}

// --- memory

TEST(ModelMemory, HoldsQueriesKeysAndValuesNextToEachOther) {
  for (ModelKind kind : kKinds) {
    const Model model(small(kind), 1);
    const Block& block = model.net.stack.blocks[0];
    for (const MultiHeadAttention* m : {&block.attn, block.cross ? &*block.cross : &block.attn}) {
      EXPECT_EQ(m->k.weight.offset, m->q.weight.offset + 8 * 8);
      EXPECT_EQ(m->v.weight.offset, m->k.weight.offset + 8 * 8);
      EXPECT_EQ(m->k.bias.offset, m->q.bias.offset + 8);
      EXPECT_EQ(m->v.bias.offset, m->k.bias.offset + 8);
    }
  }
}

TEST(ModelMemory, OfTwoParametersNeverOverlaps) {
  for (ModelKind kind : kKinds) {
    const Model model(small(kind), 1);
    std::set<Index> taken;
    for (const NamedParameter& p : unique_parameters(model.net))
      for (Index i = 0; i < p.parameter.shape.numel(); ++i)
        EXPECT_TRUE(taken.insert(p.parameter.offset + i).second) << p.name;
  }
}

TEST(ModelMemory, OfACopyIsItsOwn) {
  Model model(small(ModelKind::decoder), 1);
  Model copy = model;
  const auto logits = [](Model& m) {
    Tape tape(m.parameters);
    return logits_of(tape, m, {1, 2, 3}).values();
  };
  const std::vector<Real> before = logits(model);
  EXPECT_EQ(logits(copy), before);
  for (Real& x : copy.parameters.value(copy.net.tokens.weight)) x *= 2;
  EXPECT_NE(logits(copy), before);
  EXPECT_EQ(logits(model), before);
}

// --- traversal and computation

// Numbers of the set that a pass read as parameters, and those that traversal names.
struct Seen {
  std::set<Index> read, named;
};

Seen seen_by(const Model& model, Tape& tape) {
  Seen seen;
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.at(i).node();
    for (Index k = 0; node.parameter >= 0 && k < node.shape.numel(); ++k) seen.read.insert(node.parameter + k);
  }
  for_each_parameter(model.net, [&](const std::string&, const Parameter& p) {
    for (Index k = 0; k < p.shape.numel(); ++k) seen.named.insert(p.offset + k);
  });
  return seen;
}

TEST(ModelTraversal, NamesEveryParameterThatAPassReadsAndNoOther) {
  for (ModelKind kind : kKinds)
    for (bool tied : {true, false}) {
      ModelConfig config = small(kind);
      config.tie_embeddings = tied;
      config.context = 3;  // the length of both inputs: a longer table is read in part
      Model model(config, 1);
      Tape tape(model.parameters);
      logits_of(tape, model, {1, 2, 3});
      const Seen seen = seen_by(model, tape);
      EXPECT_EQ(seen.read, seen.named) << name_of(kind) << (tied ? ", tied" : ", untied");
      EXPECT_EQ(static_cast<Index>(seen.named.size()), parameter_count(model.net));
    }
}

TEST(ModelTraversal, MissesAParameterThatVisitForgot) {
  Model model(small(ModelKind::decoder), 1);
  Tape tape(model.parameters);
  logits_of(tape, model, {1, 2, 3, 4, 5});
  model.net.stack.norm.reset();  // as if visit had no line for it
  const Seen seen = seen_by(model, tape);
  EXPECT_NE(seen.read, seen.named);
}

TEST(ModelTraversal, ReachesEveryParameterWithAGradient) {
  for (ModelKind kind : kKinds) {
    ModelConfig config = small(kind);
    config.context = 3;
    config.vocabulary = 4;
    config.init_std = 0.5;
    Model model(config, 1);
    Tape tape(model.parameters);
    const Tensor logits = logits_of(tape, model, {1, 2, 3});
    tape.backward(cross_entropy(logits, tape.ids({1, 3}, std::vector<std::int32_t>{2, 0, 1})));
    for (const NamedParameter& p : unique_parameters(model.net)) {
      double largest = 0;
      for (Real g : model.parameters.grad(p.parameter)) largest = std::max(largest, std::abs(double{g}));
      // A key's bias adds the same to every score of a row, which softmax does not see.
      if (p.name.ends_with("k.bias")) continue;
      EXPECT_GT(largest, 1e-9) << name_of(kind) << ' ' << p.name;
    }
  }
}

// --- what a model computes

TEST(Causality, AChangedTokenChangesNothingBefore) {
  const ModelConfig config = small(ModelKind::decoder);
  Model model(config, 1);
  const std::vector<std::int32_t> tokens = {1, 2, 3, 4, 5};
  Tape tape(model.parameters);
  const std::vector<Real> before = logits_of(tape, model, tokens).values();
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    std::vector<std::int32_t> changed = tokens;
    changed[t] = 0;
    tape.reset();
    const std::vector<Real> after = logits_of(tape, model, changed).values();
    const auto row = static_cast<std::ptrdiff_t>(t) * config.vocabulary;
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + row, after.begin())) << t;
    EXPECT_NE(before[static_cast<std::size_t>(row)], after[static_cast<std::size_t>(row)]) << t;
  }
}

TEST(Causality, IsNotOfAnEncoder) {
  Model model(small(ModelKind::encoder), 1);
  Tape tape(model.parameters);
  const Real before = logits_of(tape, model, {1, 2, 3}).values()[0];
  EXPECT_NE(logits_of(tape, model, {1, 2, 4}).values()[0], before);
}

TEST(OneSetOfWeights, ServesAllPositions) {  // without positions and mask an encoder does not see the order
  ModelConfig config = small(ModelKind::encoder);
  config.positions = PositionKind::none;
  config.init_std = 0.5;
  Model model(config, 1);
  Tape tape(model.parameters);
  const std::vector<std::int32_t> tokens = {1, 4, 2, 6, 0}, order = {3, 0, 4, 2, 1};
  std::vector<std::int32_t> permuted;
  for (std::int32_t from : order) permuted.push_back(tokens[static_cast<std::size_t>(from)]);
  const Tensor straight = logits_of(tape, model, tokens), other = logits_of(tape, model, permuted);
  for (std::size_t t = 0; t < order.size(); ++t)
    for (std::size_t v = 0; v < 7; ++v)
      EXPECT_NEAR(other.values()[t * 7 + v], straight.values()[static_cast<std::size_t>(order[t]) * 7 + v],
                  sizeof(Real) == 8 ? 1e-12 : 1e-5);
}

TEST(Model, RefusesTokensOutsideItsVocabulary) {
  Model model(small(ModelKind::decoder), 1);
  for (std::int32_t bad : {-1, 7, std::int32_t{1} << 30}) {
    Tape tape(model.parameters);
    const std::string message = error_of<ShapeError>([&] { logits_of(tape, model, {0, bad}); });
    EXPECT_TRUE(contains(message, "[embedding]") && contains(message, std::to_string(bad))) << message;
  }
}

TEST(Model, RefusesASourceWithoutAnEncoderAndAMissingOne) {
  Model decoder(small(ModelKind::decoder), 1), both(small(ModelKind::encoder_decoder), 1);
  const std::vector<std::int32_t> one = {1};
  Tape tape(decoder.parameters), other(both.parameters);
  const Ids a = tape.ids({1, 1}, one), b = other.ids({1, 1}, one);
  EXPECT_TRUE(contains(error_of<ShapeError>([&] { decoder.net(a, a); }), "without encoder"));
  EXPECT_TRUE(contains(error_of<ShapeError>([&] { both.net(b); }), "the source is missing"));
}

TEST(Model, KnowsNothingBeforeItHasLearned) {  // its loss is that of guessing, ln V
  for (const auto& [task, vocabulary] : {std::pair("copy", 17.0), std::pair("lookup", 187.0)})
    for (const char* kind : {"decoder", "encoder-decoder"}) {
      Config config = Config::defaults(task);
      config.set(std::string("model.kind=") + kind);
      const auto made = make_task(config.task, config.data);
      Model model(config.model_for(*made), 1);
      const Batch batch = BatchSource(*made, layout_of(config.model.kind), 64, 1).training(1);
      EXPECT_NEAR(Shards(model, 1).evaluate(batch).loss, std::log(vocabulary), 0.1) << task << ' ' << kind;
    }
}

}  // namespace
}  // namespace tapehead
