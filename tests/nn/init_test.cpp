// Initial values: the draws of the generator's definition, with the moments that their papers ask for.
#include "nn/init.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nn/transformer.h"

namespace tapehead {
namespace {

struct Moments {
  double mean = 0, std = 0, least = 0, largest = 0;
};

Moments moments(std::span<const Real> values) {
  Moments m;
  for (Real x : values) {
    m.mean += double{x} / static_cast<double>(values.size());
    m.least = std::min(m.least, double{x});
    m.largest = std::max(m.largest, double{x});
  }
  for (Real x : values) m.std += (double{x} - m.mean) * (double{x} - m.mean) / static_cast<double>(values.size());
  m.std = std::sqrt(m.std);
  return m;
}

class Initialisers : public testing::Test {
 protected:
  ParameterSet set;
  Initialiser init{set, 3};
};

TEST_F(Initialisers, DrawNormalsOfTheStandardDeviationAskedFor) {
  const Moments m = moments(set.value(init.normal({200, 500}, 0.02)));
  EXPECT_NEAR(m.mean, 0, 4 * 0.02 / std::sqrt(1e5));  // four standard errors
  EXPECT_NEAR(m.std, 0.02, 4 * 0.02 / std::sqrt(2e5));
}

TEST_F(Initialisers, DrawXavierAndKaimingUniforms) {
  const double xavier = std::sqrt(6.0 / 700), kaiming = std::sqrt(6.0 / 500);
  for (const auto& [p, limit] :
       {std::pair(init.xavier_uniform({200, 500}), xavier), std::pair(init.kaiming_uniform({200, 500}), kaiming)}) {
    const Moments m = moments(set.value(p));
    const double std = limit / std::sqrt(3.0);
    EXPECT_NEAR(m.mean, 0, 4 * std / std::sqrt(1e5));
    EXPECT_NEAR(m.std, std, 0.01 * std);
    EXPECT_GE(m.least, -limit);
    EXPECT_LE(m.largest, limit);
    EXPECT_GT(m.largest, 0.999 * limit);
    EXPECT_LT(m.least, -0.999 * limit);
  }
}

TEST_F(Initialisers, GiveEachParameterDrawsOfItsOwn) {
  const Parameter a = init.normal({8}, 1), b = init.normal({8}, 1), ones = init.ones({3}), zeros = init.zeros({3});
  EXPECT_FALSE(std::ranges::equal(set.value(a), set.value(b)));
  for (Real x : set.value(ones)) EXPECT_EQ(x, 1);
  for (Real x : set.value(zeros)) EXPECT_EQ(x, 0);
}

ModelConfig small() {
  ModelConfig config;
  config.width = 8;
  config.context = 5;
  config.vocabulary = 7;
  return config;
}

// Worked out from the definition alone: Philox4x32-10 of counter (i, 1 << 16, 0, 0) and key (1, 0), 53 bits of its
// words to two uniforms, Box and Muller, times 0.02.
TEST(InitialWeights, OfASeedAreThoseOfTheDefinition_F31) {
  const Model model(small(), 1);
  const std::vector<double> expected = {-0.0328991638, 0.005883171,  0.00558791,    0.0206460754,
                                        -0.010806681,  0.0011928189, -0.0095492192, -0.005001385};
  const auto weights = model.parameters.value(model.net.tokens.weight);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(weights[i], expected[i], 1e-8);
}

TEST(InitialWeights, FollowTheSeedAlone) {
  const auto values = [](const Model& m) {
    return std::vector<Real>(m.parameters.values(), m.parameters.values() + m.parameters.size());
  };
  EXPECT_EQ(values(Model(small(), 5)), values(Model(small(), 5)));
  EXPECT_NE(values(Model(small(), 5)), values(Model(small(), 6)));
  EXPECT_NE(values(Model(small(), 5)), values(Model(small(), 5 + (std::uint64_t{1} << 32))));
}

TEST(InitialWeights, OfResidualBranchesShrinkWithDepth) {
  ModelConfig config = small();
  config.width = 64;
  config.layers = 8;
  const Model model(config, 1);
  const Block& block = model.net.stack.blocks[3];
  EXPECT_NEAR(moments(model.parameters.value(block.attn.q.weight)).std, 0.02, 0.001);
  EXPECT_NEAR(moments(model.parameters.value(block.attn.o.weight)).std, 0.02 / 4, 0.0003);  // sqrt(2 x 8) = 4
  EXPECT_NEAR(moments(model.parameters.value(block.mlp->proj.weight)).std, 0.02 / 4, 0.0003);
}

}  // namespace
}  // namespace tapehead
