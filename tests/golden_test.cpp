// Every op gives PyTorch's values and gradients (tests/golden/ops.py).
#include "tests/golden.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograd/attention.h"
#include "autograd/error.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL::golden {

namespace {

using Run = Tensor (*)(Case&);

struct Row {
  const char* op;  // its cases are op/0, op/1, ...
  Run run;
  Run composed = nullptr;  // the twin made of primitive ops
};

template <auto f>
Tensor of_x(Case& c) {
  return f(c["x"]);
}

template <auto f>
Tensor of_a_b(Case& c) {
  return f(c["a"], c["b"]);
}

template <auto f, Gelu form>
Tensor gelu_of_x(Case& c) {
  return f(c["x"], form);
}

template <Tensor (*f)(Tensor, int, bool), int axis, bool keep>
Tensor reduced(Case& c) {
  return f(c["x"], axis, keep);
}

template <auto f>
Tensor linear_of(Case& c) {
  return f(c["x"], c["weight"], c["bias"]);
}

template <auto f>
Tensor layer_normed(Case& c) {
  return f(c["x"], c["gain"], c["bias"], Real(1e-5));
}

template <auto f>
Tensor rms_normed(Case& c) {
  return f(c["x"], c["gain"], Real(1e-5));
}

template <auto f, int divisor, bool smoothed>
Tensor cross_entropy_of(Case& c) {
  return f(c["logits"], c.ids("targets"), CrossEntropy{-1, smoothed ? Real(0.125) : Real(0), divisor});
}

template <auto f, bool causal, bool masked>
Tensor attended(Case& c) {
  return f(c["q"], c["k"], c["v"],
           {.mask = (causal ? Mask::causal() : Mask()) & (masked ? Mask::allow(c.bools("allowed")) : Mask())});
}

template <auto f>
Tensor attended_sharply(Case& c) {
  return f(c["q"], c["k"], c["v"], {.mask = {}, .scale = Real(0.25), .temperature = Real(0.5)});
}

template <auto f>
Tensor attended_with_bias(Case& c) {
  return f(c["q"], c["k"], c["v"], {.bias = c["bias"]});
}

template <auto f>
Tensor weights_of(Case& c) {
  f(c["q"], c["k"], c["k"], {.mask = Mask::causal(), .scale = {}, .keep_weights = true});
  return c["q"].tape().find("attention.weights").at(0);
}

const Row kRows[] = {
    {"add", of_a_b<add>},
    {"sub", of_a_b<sub>},
    {"mul", of_a_b<mul>},
    {"div", of_a_b<div>},
    {"scale", [](Case& c) { return scale(c["x"], Real(0.375)); }},
    {"neg", of_x<neg>},
    {"where", [](Case& c) { return where(c.bools("condition"), c["a"], c["b"]); }},
    {"masked_fill", [](Case& c) { return masked_fill(c["x"], c.bools("keep"), Real(-1.5)); }},
    {"exp", of_x<exp>},
    {"log", of_x<log>},
    {"tanh", of_x<tanh>},
    {"sigmoid", of_x<sigmoid>},
    {"relu", of_x<relu>},
    {"gelu", gelu_of_x<gelu, Gelu::exact>},
    {"gelu, tanh", gelu_of_x<gelu, Gelu::tanh>, gelu_of_x<composed::gelu, Gelu::tanh>},
    {"silu", of_x<silu>, of_x<composed::silu>},
    {"reshape to [4, 6]",
     [](Case& c) {
       return reshape(c["x"], {4, 6});
     }},
    {"permute 2 0 1",
     [](Case& c) {
       return permute(c["x"], {2, 0, 1});
     }},
    {"transpose", [](Case& c) { return transpose(c["x"]); }},
    {"transpose 0 1", [](Case& c) { return transpose(c["x"], 0, 1); }},
    {"transpose 0 1, reshape to [3, 8]",
     [](Case& c) {
       return reshape(transpose(c["x"], 0, 1), {3, 8});
     }},
    {"slice 1 to 3 of axis 1", [](Case& c) { return slice(c["x"], 1, 1, 3); }},
    {"concat 0",
     [](Case& c) {
       return concat({c["a"], c["b"], c["a"]}, 0);
     }},
    {"concat -1",
     [](Case& c) {
       return concat({c["a"], c["b"], c["a"]}, -1);
     }},
    {"contiguous of transpose", [](Case& c) { return contiguous(transpose(c["x"], 0, 2)); }},
    {"detach", [](Case& c) { return c["x"] * detach(c["x"]); }},
    {"sum", [](Case& c) { return sum(c["x"]); }},
    {"sum of axis -1", reduced<sum, -1, false>},
    {"sum of axis 1, kept", reduced<sum, 1, true>},
    {"mean", [](Case& c) { return mean(c["x"]); }},
    {"mean of axis -1", reduced<mean, -1, false>},
    {"mean of axis 1, kept", reduced<mean, 1, true>},
    {"max of axis -1", reduced<max, -1, false>},
    {"max of axis 1, kept", reduced<max, 1, true>},
    {"logsumexp of axis -1", reduced<logsumexp, -1, false>},
    {"logsumexp of axis -1, large", reduced<logsumexp, -1, false>},
    {"logsumexp of axis 1, kept", reduced<logsumexp, 1, true>},
    {"softmax", of_x<softmax>, of_x<composed::softmax>},
    {"log_softmax", of_x<log_softmax>, of_x<composed::log_softmax>},
    {"matmul", of_a_b<matmul>},
    {"matmul of transposes", [](Case& c) { return matmul(transpose(c["a"]), transpose(c["b"])); }},
    {"linear", linear_of<linear>, linear_of<composed::linear>},
    {"linear, no bias", linear_of<linear>, linear_of<composed::linear>},
    {"layer_norm", layer_normed<layer_norm>, layer_normed<composed::layer_norm>},
    {"layer_norm, not affine", layer_normed<layer_norm>, layer_normed<composed::layer_norm>},
    {"rms_norm", rms_normed<rms_norm>, rms_normed<composed::rms_norm>},
    {"rms_norm, no gain", rms_normed<rms_norm>, rms_normed<composed::rms_norm>},
    {"embedding", [](Case& c) { return embedding(c.ids("ids"), c["table"]); }},
    {"dropout in evaluation", [](Case& c) { return dropout(c["x"], Real(0.5)); }},
    {"cross_entropy", cross_entropy_of<cross_entropy, 0, false>, cross_entropy_of<composed::cross_entropy, 0, false>},
    {"cross_entropy, smoothed", cross_entropy_of<cross_entropy, 0, true>,
     cross_entropy_of<composed::cross_entropy, 0, true>},
    {"cross_entropy, divisor 10", cross_entropy_of<cross_entropy, 10, true>,
     cross_entropy_of<composed::cross_entropy, 10, true>},
    {"mse", [](Case& c) { return mse(c["prediction"], c["target"]); },
     [](Case& c) { return composed::mse(c["prediction"], c["target"]); }},
    {"attention", attended<attention, false, false>, attended<composed::attention, false, false>},
    {"attention, causal", attended<attention, true, false>, attended<composed::attention, true, false>},
    {"attention, masked", attended<attention, false, true>, attended<composed::attention, false, true>},
    {"attention, causal and masked", attended<attention, true, true>, attended<composed::attention, true, true>},
    {"attention, scale 0.25, temperature 0.5", attended_sharply<attention>, attended_sharply<composed::attention>},
    {"attention, grouped heads", attended<attention, false, false>, attended<composed::attention, false, false>},
    {"attention, bias", attended_with_bias<attention>, attended_with_bias<composed::attention>},
    {"attention weights, causal", weights_of<attention>},
};

std::string check(const File& file, const std::string& name, Run run) {
  Tape tape;
  Case c(file, name, tape);
  try {
    return c.check(run(c));
  } catch (const Error& error) {
    return error.what();
  }
}

const File& ops() {
  static const File file("ops");
  return file;
}

}  // namespace

TEST(GoldenOps, GiveTheNumbersOfPyTorch) {
  for (const std::string& name : ops().cases()) {
    SCOPED_TRACE(name);
    const std::string op = name.substr(0, name.rfind('/'));
    const auto* row = std::ranges::find_if(kRows, [&](const Row& r) { return r.op == op; });
    ASSERT_NE(row, std::end(kRows)) << "no row runs this case";
    EXPECT_EQ(check(ops(), name, row->run), "");
    if (row->composed) {
      EXPECT_EQ(check(ops(), name, row->composed), "") << "(composed)";
    }
  }
}

TEST(GoldenOps, EveryRowHasACase) {
  for (const Row& row : kRows) EXPECT_TRUE(ops().find(std::string(row.op) + "/0/out/y")) << row.op;
}

// --- the comparison can fail

TEST(GoldenComparison, NoticesAnotherFunction) {
  EXPECT_NE(check(ops(), "gelu/0", gelu_of_x<gelu, Gelu::tanh>).find("y is off"), std::string::npos);
  EXPECT_NE(check(ops(), "attention, causal/1", attended<attention, false, false>), "");
}

TEST(GoldenComparison, NoticesAGradientThatIsAThousandthOff) {
  const std::string found = check(ops(), "exp/0", [](Case& c) {
    const Tensor y = exp(c["x"]);
    return y * Real(1.001) - detach(y) * Real(0.001);
  });
  EXPECT_EQ(found.find("y is off"), std::string::npos) << found;
  EXPECT_NE(found.find("the gradient of x is off by 0.001"), std::string::npos) << found;
}

TEST(GoldenComparison, NoticesAMissingGradientAndAnotherShape) {
  EXPECT_NE(check(ops(), "mul/0", [](Case& c) { return c["a"] * detach(c["b"]); }), "");
  EXPECT_NE(check(ops(), "exp/0", [](Case& c) { return reshape(exp(c["x"]), {-1}); }), "");
}

TEST(GoldenComparison, HoldsTheBoundAgainstTheLargestOfAll) {
  const auto failures = [](double got) {
    Comparison comparison;
    comparison.add("small", std::vector<Real>{Real(got)}, {{1}, {0.0}});
    comparison.add("large", std::vector<Real>{4, -8}, {{2}, {4.0, -8.0}});
    return comparison.failures();
  };
  EXPECT_EQ(failures(7.9 * kTolerance), "");
  EXPECT_NE(failures(8.1 * kTolerance), "");
  EXPECT_NE(failures(NAN), "");
  Comparison shorter;
  shorter.add("y", std::vector<Real>{4}, {{2}, {4.0, 4.0}});
  EXPECT_NE(shorter.failures(), "");
}

}  // namespace tapehead::inline TAPEHEAD_REAL::golden
