// The rows. A row's inputs begin with the ordinary case; [0] and [1] axes and broadcasting follow.
#include "autograd/gradcheck_ops.h"

#include <cmath>
#include <memory>

#include "autograd/attention.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

using In = std::span<const Tensor>;

const std::vector<Shapes> kUnary{{{2, 3, 4}}, {{}}, {{1}}, {{2, 0, 3}}, {{5}}, {{19}}};
const std::vector<Shapes> kBinary{{{2, 3}, {2, 3}}, {{2, 3, 4}, {3, 1}}, {{3}, {2, 1, 1}}, {{4}, {}},
                                  {{}, {2, 2}},     {{1, 1}, {1}},       {{0, 3}, {1, 3}}, {{2, 1}, {0}}};
const std::vector<Shapes> kAxis{{{2, 5, 3}}, {{1, 1, 1}}, {{0, 2, 3}}, {{3, 1, 2}}, {{2, 7, 0}}};  // axis 1 not empty
const std::vector<Shapes> kRows{{{2, 3, 5}}, {{4}}, {{1}}, {{3, 1}}, {{0, 3}}, {{2, 17}}};

double positive(std::size_t, double x) { return 0.3 + x * x; }
double divisor(std::size_t input, double x) { return input == 1 ? std::copysign(0.5 + std::abs(x), x) : x; }
double off_zero(std::size_t, double x) { return x + std::copysign(0.1, x); }

Bools flags(Tape& tape, const Shape& shape) {
  const auto values = std::make_unique<bool[]>(static_cast<std::size_t>(shape.numel()));
  for (Index i = 0; i < shape.numel(); ++i) values[static_cast<std::size_t>(i)] = check_flag(i);
  return tape.bools(shape, {values.get(), static_cast<std::size_t>(shape.numel())});
}

Ids ids(Tape& tape, const Shape& shape, Index count) {
  std::vector<std::int32_t> values;
  for (Index i = 0; i < shape.numel(); ++i) values.push_back(check_id(i, count));
  return tape.ids(shape, values);
}

/// One target for each row of the logits, some of them ignored.
Ids targets(Tensor logits) {
  const Shape shape = logits.shape().without(-1);
  std::vector<std::int32_t> values;
  for (Index i = 0; i < shape.numel(); ++i) values.push_back(check_target(i, logits.size(-1)));
  return logits.tape().ids(shape, values);
}

Bools visible(Tape& tape, Index queries, Index sources) {
  const auto values = std::make_unique<bool[]>(static_cast<std::size_t>(queries * sources));
  for (Index t = 0; t < queries; ++t)
    for (Index s = 0; s < sources; ++s) values[static_cast<std::size_t>(t * sources + s)] = check_visible(t, s);
  return tape.bools({queries, sources}, {values.get(), static_cast<std::size_t>(queries * sources)});
}

template <class F>
GradcheckFunction one(F f) {
  return [f](Tape&, In x) { return f(x[0]); };
}
template <class F>
GradcheckFunction two(F f) {
  return [f](Tape&, In x) { return f(x[0], x[1]); };
}

using Rows = std::vector<OpCheck>;

void add_elementwise(Rows& rows) {
  rows.push_back({"add", "", kBinary, two(add)});
  rows.push_back({"add", "with itself", kUnary, one([](Tensor x) { return x + x; })});
  rows.push_back({"sub", "", kBinary, two(sub)});
  rows.push_back({"mul", "", kBinary, two(mul)});
  rows.push_back({"mul", "with itself", kUnary, one([](Tensor x) { return x * x; })});
  rows.push_back({"div", "", kBinary, two(div), {}, divisor});
  rows.push_back({"scale", "", kUnary, one([](Tensor x) { return scale(x, Real(-1.5)); })});
  rows.push_back({"neg", "", kUnary, one(neg)});
  rows.push_back({"exp", "", kUnary, one([](Tensor x) { return exp(x); })});
  rows.push_back({"log", "", kUnary, one([](Tensor x) { return log(x); }), {}, positive});
  rows.push_back({"tanh", "", kUnary, one([](Tensor x) { return tanh(x); })});
  rows.push_back({"sigmoid", "", kUnary, one(sigmoid)});
  rows.push_back({"relu", "", kUnary, one(relu), {}, off_zero});
  rows.push_back({"gelu", "exact", kUnary, one([](Tensor x) { return gelu(x); })});
  rows.push_back({"gelu", "tanh", kUnary, one([](Tensor x) { return gelu(x, Gelu::tanh); }),
                  one([](Tensor x) { return composed::gelu(x); })});
  rows.push_back({"silu", "", kUnary, one(silu), one(composed::silu)});
  rows.push_back({"where", "", kBinary, [](Tape& tape, In x) {
                    return where(flags(tape, broadcast_shapes(tape, "where", x[0].shape(), x[1].shape())), x[0], x[1]);
                  }});
  rows.push_back({"where", "broadcast condition", {{{3}, {}}, {{2, 1}, {1, 3}}, {{1}, {0}}}, [](Tape& tape, In x) {
                    return where(flags(tape, {4, 2, 1}), x[0], x[1]);
                  }});
  rows.push_back({"masked_fill", "", kUnary,
                  [](Tape& tape, In x) { return masked_fill(x[0], flags(tape, x[0].shape()), Real(-2.5)); }});
  rows.push_back({"masked_fill", "broadcast mask", kRows,
                  [](Tape& tape, In x) { return masked_fill(x[0], flags(tape, {x[0].size(-1)}), Real(-2.5)); }});
  rows.push_back({"dropout", "evaluation", kUnary, one([](Tensor x) { return dropout(x, Real(0.5)); })});
  rows.push_back({"dropout", "training", kUnary, [](Tape& tape, In x) {
                    tape.training = true;
                    return dropout(x[0], Real(0.25));
                  }});
}

void add_shape(Rows& rows) {
  rows.push_back({"reshape", "", {{{2, 6}}, {{12, 1, 1}}}, one([](Tensor x) { return reshape(x, {3, -1, 2}); })});
  rows.push_back({"reshape", "empty", {{{0, 3}}, {{5, 0}}}, one([](Tensor x) { return reshape(x, Shape{2, 0}); })});
  rows.push_back({"permute", "", {{{2, 3, 4}}, {{1, 1, 1}}, {{2, 0, 3}}}, one([](Tensor x) {
                    return permute(x, {2, 0, 1});
                  })});
  rows.push_back({"transpose", "", {{{2, 3, 4}}, {{1, 3}}, {{3, 0}}}, one([](Tensor x) { return transpose(x); })});
  rows.push_back({"transpose", "axes", {{{2, 3, 4, 5}}, {{1, 2, 1}}, {{0, 3, 2}}}, one([](Tensor x) {
                    return transpose(x, 0, -1);
                  })});
  rows.push_back({"slice", "", kAxis, one([](Tensor x) { return slice(x, 1, x.size(1) / 2, x.size(1)); })});
  rows.push_back({"slice", "nothing", kAxis, one([](Tensor x) { return slice(x, -2, 1, 1); })});
  rows.push_back(
      {"concat", "", {{{2, 3}, {2, 1}}, {{1, 1}, {1, 1}}, {{2, 0}, {2, 3}}, {{0, 2}, {0, 1}}}, [](Tape&, In x) {
         return concat(x, -1);
       }});
  rows.push_back(
      {"concat", "three, one twice", {{{2, 3}, {1, 3}}, {{1, 1}, {1, 1}}, {{0, 3}, {2, 3}}}, [](Tape&, In x) {
         return concat({x[0], x[1], x[0]}, 0);
       }});
  rows.push_back({"contiguous", "", {{{2, 3, 4}}, {{1, 1, 1}}, {{2, 0, 3}}}, one([](Tensor x) {
                    return contiguous(permute(x, {1, 2, 0}));
                  })});
}

void add_reductions(Rows& rows) {
  rows.push_back({"sum", "all", kUnary, one([](Tensor x) { return sum(x); })});
  rows.push_back({"mean", "all", {{{2, 3, 4}}, {{}}, {{1, 1}}}, one([](Tensor x) { return mean(x); })});
  const std::vector<Shapes> vector{{{5}}, {{1}}};
  const auto reduction = [&]<class F>(const char* name, F f) {
    rows.push_back({name, "axis 1", kAxis, one([f](Tensor x) { return f(x, 1, false); })});
    rows.push_back({name, "axis -2, kept", kAxis, one([f](Tensor x) { return f(x, -2, true); })});
    rows.push_back({name, "axis 0 of a vector", vector, one([f](Tensor x) { return f(x, 0, false); })});
    rows.push_back({name, "axis -1", kRows, one([f](Tensor x) { return f(x, -1, false); })});
  };
  reduction("sum", [](Tensor x, int axis, bool keep) { return sum(x, axis, keep); });
  reduction("mean", [](Tensor x, int axis, bool keep) { return mean(x, axis, keep); });
  reduction("max", [](Tensor x, int axis, bool keep) { return max(x, axis, keep); });
  reduction("logsumexp", [](Tensor x, int axis, bool keep) { return logsumexp(x, axis, keep); });
  rows.push_back({"sum", "empty axis", {{{2, 0, 3}}, {{0}}}, one([](Tensor x) { return sum(x, 0); })});
  rows.push_back({"softmax", "", kRows, one(softmax), one(composed::softmax)});
  rows.push_back({"log_softmax", "", kRows, one(log_softmax), one(composed::log_softmax)});
}

void add_products(Rows& rows) {
  rows.push_back({"matmul",
                  "",
                  {{{3, 4}, {4, 2}},
                   {{2, 3, 4}, {2, 4, 5}},
                   {{2, 3, 4}, {4, 5}},
                   {{3, 4}, {2, 4, 1}},
                   {{2, 1, 3, 2}, {3, 2, 4}},
                   {{1, 1}, {1, 1}},
                   {{0, 3}, {3, 2}},
                   {{2, 3}, {3, 0}},
                   {{2, 0}, {0, 3}},
                   {{0, 2, 3}, {3, 2}},
                   {{7, 5}, {5, 18}}},
                  two(matmul)});
  rows.push_back({"matmul", "with its own transpose", {{{3, 4}}, {{2, 2, 3}}, {{1, 1}}}, one([](Tensor x) {
                    return matmul(x, transpose(x));
                  })});
  rows.push_back({"linear",
                  "",
                  {{{2, 3, 4}, {5, 4}, {5}},
                   {{4}, {2, 4}, {2}},
                   {{3, 1}, {1, 1}, {1}},
                   {{0, 3}, {2, 3}, {2}},
                   {{2, 0}, {3, 0}, {3}},
                   {{7, 5}, {18, 5}, {18}}},
                  [](Tape&, In x) { return linear(x[0], x[1], x[2]); },
                  [](Tape&, In x) { return composed::linear(x[0], x[1], x[2]); }});
  rows.push_back({"linear",
                  "no bias",
                  {{{2, 3}, {4, 3}}, {{1, 1}, {1, 1}}, {{0, 3}, {2, 3}}},
                  two([](Tensor x, Tensor w) { return linear(x, w); }),
                  two([](Tensor x, Tensor w) { return composed::linear(x, w); })});
  rows.push_back({"embedding", "", {{{5, 3}}, {{1, 1}}, {{3, 0}}}, [](Tape& tape, In x) {
                    return embedding(ids(tape, {2, 4}, x[0].size(0)), x[0]);
                  }});
  rows.push_back({"embedding", "no ids", {{{5, 3}}, {{0, 2}}}, [](Tape& tape, In x) {
                    return embedding(ids(tape, {2, 0}, 1), x[0]);
                  }});
}

void add_norms(Rows& rows) {
  const std::vector<Shapes> both{
      {{2, 3, 5}, {5}, {5}}, {{4}, {4}, {4}}, {{3, 1}, {1}, {1}}, {{0, 3}, {3}, {3}}, {{2, 19}, {19}, {19}}};
  const std::vector<Shapes> gain{{{2, 3, 5}, {5}}, {{4}, {4}}, {{3, 1}, {1}}, {{0, 3}, {3}}, {{2, 19}, {19}}};
  rows.push_back({"layer_norm", "", both, [](Tape&, In x) { return layer_norm(x[0], x[1], x[2]); },
                  [](Tape&, In x) { return composed::layer_norm(x[0], x[1], x[2]); }});
  rows.push_back({"layer_norm", "gain alone", gain, two([](Tensor x, Tensor g) { return layer_norm(x, g, {}); }),
                  two([](Tensor x, Tensor g) { return composed::layer_norm(x, g, {}); })});
  rows.push_back({"layer_norm", "bare, eps 0.1", kRows, one([](Tensor x) { return layer_norm(x, {}, {}, Real(0.1)); }),
                  one([](Tensor x) { return composed::layer_norm(x, {}, {}, Real(0.1)); })});
  rows.push_back({"rms_norm", "", gain, two([](Tensor x, Tensor g) { return rms_norm(x, g); }),
                  two([](Tensor x, Tensor g) { return composed::rms_norm(x, g); }), off_zero});
  rows.push_back({"rms_norm", "bare, eps 0.1", kRows, one([](Tensor x) { return rms_norm(x, {}, Real(0.1)); }),
                  one([](Tensor x) { return composed::rms_norm(x, {}, Real(0.1)); })});
}

void add_losses(Rows& rows) {
  const std::vector<Shapes> logits{{{2, 3, 5}}, {{4, 1}}, {{7}}, {{0, 3}}, {{6, 19}}};
  const auto loss = [&](const char* variant, const CrossEntropy& options) {
    rows.push_back({"cross_entropy", variant, logits,
                    one([options](Tensor x) { return cross_entropy(x, targets(x), options); }),
                    one([options](Tensor x) { return composed::cross_entropy(x, targets(x), options); })});
  };
  loss("", {});
  loss("smoothing 0.2", {.label_smoothing = Real(0.2)});
  loss("divisor 10", {.divisor = 10});
  rows.push_back({"mse", "", {{{2, 3}, {2, 3}}, {{1}, {1}}, {{}, {}}}, two(mse), two(composed::mse)});
}

/// Options for the inputs q, k, v and what follows them.
using AttentionOptions = Attention (*)(Tape& tape, In x);

OpCheck attention_row(const char* variant, std::vector<Shapes> inputs, AttentionOptions options) {
  return {"attention", variant, std::move(inputs),
          [=](Tape& tape, In x) { return attention(x[0], x[1], x[2], options(tape, x)); },
          [=](Tape& tape, In x) { return composed::attention(x[0], x[1], x[2], options(tape, x)); }};
}

Tensor slopes(Tape& tape, Index heads) {
  std::vector<Real> values;
  for (Index h = 0; h < heads; ++h) values.push_back(static_cast<Real>(check_slope(h)));
  return tape.input({heads}, values);
}

const std::vector<Shapes> kAttention{{{2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}},
                                     {{3, 2}, {3, 2}, {3, 2}},
                                     {{2, 3, 4}, {5, 4}, {2, 1, 5, 2}},  // leading axes broadcast
                                     {{2, 1, 3, 2}, {3, 4, 2}, {4, 2}},
                                     {{1, 1}, {1, 1}, {1, 1}},
                                     {{0, 2}, {3, 2}, {3, 2}},
                                     {{0, 2, 2}, {0, 3, 2}, {0, 3, 2}},
                                     {{2, 2}, {3, 2}, {3, 0}}};
const std::vector<Shapes> kAttentionWithBias{{{2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, {2, 2, 3, 5}},
                                             {{2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, {2, 1, 5}},
                                             {{2, 2, 3, 2}, {4, 2}, {4, 2}, {2, 1, 1, 4}},
                                             {{3, 2}, {3, 2}, {3, 2}, {3, 1}},
                                             {{3, 2}, {3, 2}, {3, 2}, {3}},
                                             {{2, 2}, {2, 2}, {2, 2}, {}},
                                             {{0, 2, 2}, {0, 3, 2}, {0, 3, 2}, {2, 3}}};
const std::vector<Shapes> kAttentionWithVector{{{2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, {2, 1, 4}},
                                               {{3, 2}, {3, 2}, {3, 2}, {1, 2}},
                                               {{2, 3, 17}, {4, 17}, {2, 4, 2}, {2, 1, 17}},
                                               {{1, 1}, {1, 1}, {1, 1}, {1, 1}},
                                               {{0, 2, 2}, {0, 3, 2}, {0, 3, 2}, {1, 2}}};
const std::vector<Shapes> kGroupedHeads{{{2, 4, 3, 2}, {2, 2, 5, 2}, {2, 2, 5, 3}},
                                        {{4, 3, 2}, {2, 3, 2}, {1, 3, 2}},
                                        {{6, 1, 2}, {3, 1, 2}, {2, 1, 1}},
                                        {{0, 4, 3, 2}, {0, 2, 3, 2}, {2, 3, 2}}};
const std::vector<Shapes> kGroupedHeadsWithBias{{{2, 4, 3, 2}, {2, 2, 5, 2}, {2, 2, 5, 3}, {4, 1, 5}},
                                                {{4, 3, 2}, {2, 3, 2}, {1, 3, 2}, {3, 3}},
                                                {{6, 1, 2}, {3, 2, 2}, {2, 2, 1}, {6, 1, 1}}};

void add_attention(Rows& rows) {
  rows.push_back(attention_row("", kAttention, [](Tape&, In) { return Attention{}; }));
  rows.push_back(attention_row("causal", kAttention, [](Tape&, In) { return Attention{.mask = Mask::causal()}; }));
  rows.push_back(attention_row("allowed, scale, temperature", kAttention, [](Tape& tape, In x) {
    const Mask mask = Mask::allow(visible(tape, x[0].size(-2), x[1].size(-2)));
    return Attention{.mask = mask, .scale = Real(0.7), .temperature = Real(0.5)};
  }));
  rows.push_back(attention_row("window", kAttention, [](Tape&, In) { return Attention{.mask = Mask::window(2)}; }));
  rows.push_back(attention_row("causal, window, padding", kAttention, [](Tape& tape, In x) {
    const Index batches = x[0].rank() > 2 ? std::max(x[0].size(0), x[2].rank() == 4 ? x[2].size(0) : 0) : 1;
    auto* lengths = tape.scratch<Index>(batches);
    for (Index b = 0; b < batches; ++b) lengths[b] = check_length(b, x[1].size(-2));
    const Mask padding = Mask::padding({lengths, static_cast<std::size_t>(batches)});
    return Attention{.mask = Mask::causal() & Mask::window(3) & padding};
  }));
  rows.push_back(attention_row("softcap", kAttention, [](Tape&, In) { return Attention{.softcap = Real(0.8)}; }));
  rows.push_back(attention_row("slopes", kAttention, [](Tape& tape, In x) {
    Index heads = x[0].rank() > 2 ? x[0].size(-3) : 1;
    if (x[1].rank() > 2) heads = std::max(heads, x[1].size(-3));
    return Attention{.mask = Mask::causal(), .slopes = slopes(tape, heads)};
  }));
  rows.push_back(attention_row("grouped heads", kGroupedHeads, [](Tape&, In) { return Attention{}; }));
  rows.push_back(attention_row("grouped heads, causal, softcap, bias", kGroupedHeadsWithBias, [](Tape&, In x) {
    return Attention{.mask = Mask::causal(), .softcap = Real(0.8), .bias = x[3]};
  }));
  rows.push_back(attention_row("dropout", kAttention, [](Tape& tape, In) {
    tape.training = true;
    return Attention{.dropout = Real(0.25)};
  }));
  rows.push_back(attention_row("bias", kAttentionWithBias, [](Tape&, In x) { return Attention{.bias = x[3]}; }));
  rows.push_back(
      attention_row("additive", kAttentionWithVector, [](Tape&, In x) { return Attention{.vector = x[3]}; }));
  rows.push_back(attention_row("additive, causal, softcap", kAttentionWithVector, [](Tape&, In x) {
    return Attention{.mask = Mask::causal(), .softcap = Real(1.5), .vector = x[3]};
  }));
}

void add_positions(Rows& rows) {
  const std::vector<Shapes> inputs{{{2, 3, 6}}, {{2, 2, 3, 4}}, {{3, 5}}, {{1, 1, 4}}, {{0, 3, 4}}, {{3, 0}}};
  rows.push_back({"rope", "", inputs, [](Tape& tape, In x) {
                    const Index pairs = std::min<Index>(x[0].size(-1) / 2, 2);  // of [2, 3, 6]: not all channels
                    std::vector<Real> rotation;
                    for (Index t = 0; t < x[0].size(-2); ++t)
                      for (Index i = 0; i < pairs; ++i) {
                        rotation.push_back(static_cast<Real>(std::cos(check_angle(t, i))));
                        rotation.push_back(static_cast<Real>(std::sin(check_angle(t, i))));
                      }
                    return rope(x[0], tape.input({x[0].size(-2), pairs, 2}, rotation));
                  }});
}

}  // namespace

const std::vector<OpCheck>& op_checks() {
  static const Rows rows = [] {
    Rows r;
    add_elementwise(r);
    add_shape(r);
    add_reductions(r);
    add_products(r);
    add_norms(r);
    add_losses(r);
    add_attention(r);
    add_positions(r);
    return r;
  }();
  return rows;
}

GradcheckResult gradcheck(const OpCheck& check, const Gradcheck& options) {
  Gradcheck with_domain = options;
  if (check.domain) with_domain.domain = check.domain;
  GradcheckResult worst;
  worst.passed = true;
  const auto run = [&](const std::string& name, const GradcheckFunction& f, const Shapes& shapes) {
    const GradcheckResult result = gradcheck(name, f, {shapes.begin(), shapes.end()}, with_domain);
    if (worst.passed && (!result.passed || result.error > worst.error)) worst = result;
  };
  for (const Shapes& shapes : check.inputs) {
    run(check.name(), check.run, shapes);
    if (check.twin) run("composed " + check.name(), check.twin, shapes);
  }
  return worst;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
