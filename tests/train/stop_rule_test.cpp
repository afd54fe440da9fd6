#include "train/stop_rule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograd/error.h"
#include "tests/errors.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;

TEST(StopRule, ReadsAMeasureASignAndANumber) {
  const StopRule rule = StopRule::parse("pattern_match>0.95");
  EXPECT_EQ(rule.measure, "pattern_match");
  EXPECT_TRUE(rule.is_of_heads());
  EXPECT_TRUE(rule.holds(0.96));
  EXPECT_FALSE(rule.holds(0.95) || rule.holds(0.5) || rule.holds(NAN));
  EXPECT_EQ(rule.text(), "pattern_match>0.95");
  const StopRule loss = StopRule::parse("loss<1e-2");
  EXPECT_FALSE(loss.is_of_heads());
  EXPECT_TRUE(loss.holds(0.005));
  EXPECT_FALSE(loss.holds(0.02) || loss.holds(NAN));
}

TEST(StopRule, RefusesWhatItCannotRead) {
  const auto refusal = [](const char* text) { return error_of<ConfigError>([&] { StopRule::parse(text); }); };
  EXPECT_TRUE(contains(refusal("patern_match>0.9"), "Did you mean 'pattern_match'?"));
  for (const char* text : {"", ">", "loss", "loss=1", "loss>", "loss>x", "loss>1x", "loss>nan", "loss>inf", "loss > 1"})
    EXPECT_TRUE(contains(refusal(text), "stop-when")) << text;
}

}  // namespace
}  // namespace tapehead
