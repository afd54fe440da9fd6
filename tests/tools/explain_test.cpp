// The lesson's numbers, by its own arithmetic: e = exp(1 / sqrt(2)), weights e / (2e + 1) and 1 / (2e + 1).
#include "tools/explain.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograd/error.h"
#include "tests/errors.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;

constexpr double kTolerance = sizeof(Real) == 4 ? 1e-6 : 1e-12;

// On one line: the text is broken where it must be.
std::string unbroken(const std::string& text) {
  std::string out;
  for (const char c : text)
    if ((c != ' ' && c != '\n') || (!out.empty() && out.back() != ' ')) out += c == '\n' ? ' ' : c;
  return out;
}

TEST(Explain, WorksOutTheLesson) {
  const Explanation e = explain({});
  ASSERT_EQ(e.queries.size(), 1u);
  const ExplainedQuery& x = e.queries[0];
  const double score = 1 / std::sqrt(2.0), big = std::exp(score), sum = 2 * big + 1;
  EXPECT_EQ(x.dots, (std::vector<Real>{1, 0, 1}));
  EXPECT_NEAR(x.scores[0], score, kTolerance);
  EXPECT_EQ(x.scores[1], 0);
  EXPECT_NEAR(x.largest, score, kTolerance);
  EXPECT_NEAR(x.shifted[1], -score, kTolerance);
  EXPECT_NEAR(x.exps[1], 1 / big, kTolerance);
  EXPECT_NEAR(x.sum, sum / big, kTolerance);
  EXPECT_NEAR(x.weights[0], big / sum, kTolerance);
  EXPECT_NEAR(x.weights[1], 1 / sum, kTolerance);
  EXPECT_NEAR(x.weights[2], big / sum, kTolerance);
  EXPECT_NEAR(x.output[0], 3 * big / sum, kTolerance);    // 1 w0 + 0 w1 + 2 w2
  EXPECT_NEAR(x.output[1], (2 + big) / sum, kTolerance);  // 0 w0 + 2 w1 + 1 w2
}

TEST(Explain, ShowsEveryStepToFourDecimals) {
  const std::string text = explanation_text(explain({}));
  for (const char* part : {
           "[1, 0] . [1, 1] = 1 x 1 + 0 x 1 = 1.0000",
           "divide by sqrt(d) = sqrt(2) = 1.4142",
           "every source is visible",
           "subtract the largest visible score, 0.7071",
           "       0      1.0000      0.7071      0.0000      1.0000      0.4011\n",
           "       1      0.0000      0.0000     -0.7071      0.4931      0.1978\n",
           "       2      1.0000      0.7071      0.0000      1.0000      0.4011\n",
           "     sum                                          2.4931      1.0000\n",
           "0.4011 x [2, 1] = [0.8022, 0.4011]",
           "= [1.2033, 0.7967]\n",
           "does not tell why a model decides",
           "--temperature 0.5",
           "--causal",
       })
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    EXPECT_LE(end - at, 80u) << text.substr(at, end - at);
  }
}

TEST(Explain, HidesLaterSourcesWhenCausal) {
  ExplainOptions options;
  options.q = "1,0; 0,1; 1,1";
  options.causal = true;
  const Explanation e = explain(options);
  EXPECT_EQ(e.queries[0].weights, (std::vector<Real>{1, 0, 0}));
  EXPECT_EQ(e.queries[0].output, (std::vector<Real>{1, 0}));  // its own value, exactly
  EXPECT_EQ(e.queries[1].weights[2], 0);
  EXPECT_GT(e.queries[2].weights[2], 0);
  const std::string text = explanation_text(e);
  EXPECT_TRUE(contains(text, "causal: query 0 sees sources 0 to 0; masked: 1, 2")) << text;
  EXPECT_TRUE(contains(text, "       1      0.0000      0.0000      masked           -           0\n")) << text;
}

// Fewer queries than keys: the last query sees the last source, as in decoding.
TEST(Explain, AlignsCausalityToTheEndF05) {
  ExplainOptions options;
  options.q = "1,0;0,1";
  options.causal = true;
  const Explanation e = explain(options);
  EXPECT_EQ(e.queries[0].visible, (std::vector<bool>{true, true, false}));
  EXPECT_EQ(e.queries[1].visible, (std::vector<bool>{true, true, true}));
  EXPECT_TRUE(contains(unbroken(explanation_text(e)), "the last query sees the last source"));
}

TEST(Explain, MasksASourceAtEveryTemperature) {
  for (const char* temperature : {"0.01", "1", "100"}) {
    ExplainOptions options;
    options.allow = "1,0,1";
    options.temperature = temperature;
    EXPECT_EQ(explain(options).queries[0].weights, (std::vector<Real>{0.5, 0, 0.5})) << temperature;
  }
}

TEST(Explain, CombinesMaskAndCausality) {
  ExplainOptions options;
  options.q = "1,0;1,0;1,0";
  options.causal = true;
  options.allow = "1,1,1;0,1,1;1,1,0";
  const Explanation e = explain(options);
  EXPECT_EQ(e.queries[1].visible, (std::vector<bool>{false, true, false}));
  EXPECT_EQ(e.queries[2].visible, (std::vector<bool>{true, true, false}));
}

TEST(Explain, SharpensAtALowTemperatureAndFlattensAtAHighOne) {
  ExplainOptions sharp, flat;
  sharp.temperature = "0.5";
  flat.temperature = "2";
  const Real middle = explain({}).queries[0].weights[1];
  EXPECT_LT(explain(sharp).queries[0].weights[1], middle);
  EXPECT_GT(explain(flat).queries[0].weights[1], middle);
  EXPECT_TRUE(contains(unbroken(explanation_text(explain(sharp))), "and by the temperature 0.5"));
}

TEST(Explain, TakesValuesOfAnotherWidthAndLargeScores) {
  ExplainOptions options;
  options.q = "1e4,0";
  options.v = "1,2,3;4,5,6;7,8,9";
  EXPECT_EQ(explain(options).queries[0].output, (std::vector<Real>{4, 5, 6}));  // (v0 + v2) / 2
}

TEST(Explain, GivesEveryNumberAsJson) {
  ExplainOptions options;
  options.allow = "1,0,1";
  const auto json = explanation_json(explain(options));
  EXPECT_EQ(json["weights"].dump(), "[[0.5,0.0,0.5]]");
  EXPECT_EQ(json["output"].dump(), "[[1.5,0.5]]");
  EXPECT_EQ(json["shifted"].dump(), "[[0.0,null,0.0]]");
  EXPECT_EQ(json["visible"].dump(), "[[true,false,true]]");
  EXPECT_NEAR(json["scale"].get<double>(), 1 / std::sqrt(2.0), kTolerance);
}

// The message for one wrong option.
std::string refusal(void (*change)(ExplainOptions&)) {
  ExplainOptions options;
  change(options);
  const std::string message = error_of<ConfigError>([&] { explain(options); });
  EXPECT_EQ(message.find('\n'), message.npos);
  return message;
}

TEST(Explain, RefusesBadInputInOneLine) {
  using O = ExplainOptions;
  EXPECT_TRUE(contains(refusal([](O& o) { o.q = "1,a"; }), "--q: 'a' is not a finite number"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.q = ""; }), "--q: '' is not a finite number"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.q = "1e200,0"; }), "--q: '1e200' is beyond what a single"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.q = "-1e999,0"; }), "--q: '-1e999' is beyond what a single"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.q = "1e-999,0"; }), "--q: '1e-999' is beyond what a single"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.k = "1,nan;0,1;1,1"; }), "--k: 'nan' is not a finite number"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.v = "1;inf;2"; }), "--v: 'inf' is not a finite number"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.v = "1;\x1b[2J;2"; }), "--v: '\\x1b[2J' is not a finite number"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.k = "1,0;0;1,1"; }), "--k: row 1 has 1 numbers, row 0 has 2"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.q = "1,2,3"; }), "a query has 3 numbers, a key has 2"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.v = "1;2"; }), "--k has 3 rows, --v has 2"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.temperature = "0"; }), "--temperature is 0"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.temperature = "1e-300"; }), "'1e-300' is beyond what a single"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.temperature = "-1"; }), "--temperature is -1"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.temperature = "warm"; }), "--temperature: 'warm'"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.allow = "0,0,0"; }), "query 0 may see no source"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.allow = "1,2,1"; }), "2 is neither 0 nor 1"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.allow = "1,1"; }), "--allow is 1 x 2, the weights are 1 x 3"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.q = "1,0;1,0;1,0;1,0", o.causal = true; }), "4 queries and 3 sources"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.q = std::string(200, ';'); }), "--q"));
  EXPECT_TRUE(contains(refusal([](O& o) { o.q = "1e20,0", o.temperature = sizeof(Real) == 4 ? "1e-38" : "1e-300"; }),
                       "the score of query 0 and key 0 is too large"));
}

}  // namespace
}  // namespace tapehead
