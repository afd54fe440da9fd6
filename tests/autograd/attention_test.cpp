// Fused attention against a three-loop reference and against its composed twin: masks, batches, sizes beyond a panel.
#include "autograd/attention.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "autograd/error.h"
#include "autograd/rng.h"
#include "tests/errors.h"
#include "tests/evaluate.h"
#include "tests/op_cases.h"

namespace tapehead::test {
namespace {

using In = std::span<const Tensor>;
constexpr Real kNaN = std::numeric_limits<Real>::quiet_NaN();

Array random_array(const Shape& shape, rng::Generator& random) {
  Array x(shape);
  for (double& value : x.data) value = static_cast<double>(static_cast<Real>(random.normal()));
  return x;
}

/// Flags in a form that both a tape and the reference can read.
struct Flags {
  Shape shape;
  std::unique_ptr<bool[]> data;

  explicit Flags(const Shape& s) : shape(s), data(new bool[static_cast<std::size_t>(s.numel()) + 1]) {}
  bool& operator[](Index i) { return data[static_cast<std::size_t>(i)]; }
  bool at(const Position& p) const { return data[static_cast<std::size_t>(element(shape, p))]; }
  Bools on(Tape& tape) const { return tape.bools(shape, {data.get(), static_cast<std::size_t>(shape.numel())}); }
};

/// About half true; each query sees the first source.
Flags random_flags(const Shape& shape, rng::Generator& random) {
  Flags flags(shape);
  for (Index i = 0; i < shape.numel(); ++i) flags[i] = i % shape[-1] == 0 || random.below(2) == 1;
  return flags;
}

void compare(const Arrays& x, const Flags* flags, bool causal, Index window) {
  const Index ahead = x[1].shape[-2] - x[0].shape[-2];
  const Reference naive = [&](const Arrays& a) {
    return reference::attention(a, 1 / std::sqrt(static_cast<double>(a[0].shape[-1])), [&](const Position& at) {
      const Index distance = at.back() - at[at.size() - 2] - ahead;
      return (!causal || distance <= 0) && (!window || std::abs(distance) < window) && (!flags || flags->at(at));
    });
  };
  const auto options = [&](Tape& tape) {
    return Attention{.mask = (causal ? Mask::causal() : Mask()) & (window ? Mask::window(window) : Mask()) &
                             (flags ? Mask::allow(flags->on(tape)) : Mask())};
  };
  const auto fused = [&](Tape& tape, In in) { return attention(in[0], in[1], in[2], options(tape)); };
  const auto twin = [&](Tape& tape, In in) { return composed::attention(in[0], in[1], in[2], options(tape)); };
  const Outcome packed = evaluate(fused, x, Layout::packed);
  expect_near({packed.y}, {naive(x)}, kValueTolerance, "y");
  expect_near(packed.grads, slopes(naive, x, packed.seed), kGradTolerance, "gradient of input");
  for (const Outcome& other :
       {evaluate(fused, x, Layout::strided), evaluate(twin, x, Layout::packed), evaluate(twin, x, Layout::strided)}) {
    expect_near({other.y}, {packed.y}, kValueTolerance, "y, strided or composed");
    expect_near(other.grads, packed.grads, kDouble ? 1e-12 : 1e-4, "gradient, strided or composed, of input");
  }
}

TEST(Attention, EqualsThreeLoopsForEveryMixOfSmallSizes_F07) {
  rng::Generator random(rng::Stream(3, rng::Purpose::check));
  const Index sizes[] = {1, 2, 3};
  for (const Index B : {0, 1, 2, 3})
    for (const Index H : sizes)
      for (const Index T : sizes)
        for (const Index S : sizes) {
          SCOPED_TRACE("B, H, T, S = " + Shape({B, H, T, S}).str());
          // values of another width, and in turns keys and values of each head, or of all heads, or of all batches
          const bool of_heads = (T + S) % 2 == 0, of_batches = (B + H) % 3 == 0;
          const Index kv_heads = of_heads ? 1 : H, v_batches = of_batches ? 1 : B;
          const Arrays x{random_array({B, H, T, 2}, random), random_array({B, kv_heads, S, 2}, random),
                         random_array({v_batches, kv_heads, S, 3}, random)};
          const Flags padding = random_flags({B, 1, 1, S}, random), pairs = random_flags({T, S}, random),
                      each = random_flags({B, H, T, S}, random), heads = random_flags({H, 1, S}, random);
          for (const Flags* flags : {static_cast<const Flags*>(nullptr), &padding, &pairs, &each, &heads})
            for (const bool causal : {false, true}) {
              SCOPED_TRACE((causal ? "causal, allowed " : "allowed ") + (flags ? flags->shape.str() : "everything"));
              if (!causal || T <= S) compare(x, flags, causal, 0);
            }
          for (const Index window : {1, 2})
            if (T <= S) compare(x, nullptr, window == 2, window);
        }
}

TEST(Attention, EqualsItsTwinBeyondOnePanel) {
  rng::Generator random(rng::Stream(4, rng::Purpose::check));
  for (const Index T : {64, 65, 130, 300}) {
    const Index S = T + 7;
    const Arrays x{random_array({2, T, 4}, random), random_array({2, S, 4}, random), random_array({S, 3}, random)};
    const Flags flags = random_flags({2, 1, S}, random);
    for (const bool causal : {false, true}) {
      SCOPED_TRACE("T = " + std::to_string(T) + (causal ? ", causal" : ""));
      const auto options = [&](Tape& tape) {
        return Attention{.mask = (causal ? Mask::causal() : Mask()) & Mask::allow(flags.on(tape)),
                         .temperature = Real(0.5)};
      };
      const auto fused = [&](Tape& tape, In in) { return attention(in[0], in[1], in[2], options(tape)); };
      const auto twin = [&](Tape& tape, In in) { return composed::attention(in[0], in[1], in[2], options(tape)); };
      const Outcome a = evaluate(fused, x, Layout::packed), b = evaluate(twin, x, Layout::packed);
      expect_near({a.y}, {b.y}, kValueTolerance * 10, "y");
      expect_near(a.grads, b.grads, kDouble ? 1e-12 : 1e-4, "gradient of input");
    }
  }
}

// Rows of several blocks, of which some hide all their sources: even queries see the first five, odd ones the last.
TEST(Attention, EqualsItsTwinWhereWholeBlocksAreHidden) {
  rng::Generator random(rng::Stream(6, rng::Purpose::check));
  constexpr Index T = 66, S = 600;
  const Arrays x{random_array({2, T, 3}, random), random_array({2, S, 3}, random), random_array({2, S, 5}, random),
                 random_array({T, S}, random)};
  Flags flags({T, S});
  for (Index t = 0; t < T; ++t)
    for (Index s = 0; s < S; ++s) flags[t * S + s] = t % 2 == 0 ? s < 5 : s >= S - 5;
  for (const Index window : {0, 40})
    for (const Real softcap : {Real(0), Real(2)}) {
      const auto options = [&](Tape& tape, Tensor bias) {
        const Mask mask = window ? Mask::causal() & Mask::window(window) : Mask::allow(flags.on(tape));
        return Attention{.mask = mask, .softcap = softcap, .bias = bias};
      };
      const auto fused = [&](Tape& tape, In in) { return attention(in[0], in[1], in[2], options(tape, in[3])); };
      const auto twin = [&](Tape& tape, In in) {
        return composed::attention(in[0], in[1], in[2], options(tape, in[3]));
      };
      const Outcome a = evaluate(fused, x, Layout::packed), b = evaluate(twin, x, Layout::packed);
      expect_near({a.y}, {b.y}, kValueTolerance * 10, "y");
      expect_near(a.grads, b.grads, kDouble ? 1e-12 : 1e-4, "gradient of input");
    }
}

TEST(Attention, AlignsCausalToTheEnd_F05) {  // one new query sees all earlier keys, as in the whole sequence
  rng::Generator random(rng::Stream(5, rng::Purpose::check));
  const Array q = random_array({4, 3}, random), k = random_array({4, 3}, random), v = random_array({4, 2}, random);
  Tape tape;
  const Tensor keys = tape.input(k.shape, as_reals(k)), values = tape.input(v.shape, as_reals(v));
  const Tensor queries = tape.input(q.shape, as_reals(q));
  const Attention causal{.mask = Mask::causal()};
  const std::vector<Real> whole = attention(queries, keys, values, causal).values();
  for (Index t = 0; t < 4; ++t) {
    const Tensor seen_keys = slice(keys, 0, 0, t + 1), seen_values = slice(values, 0, 0, t + 1);
    const std::vector<Real> row = attention(slice(queries, 0, t, t + 1), seen_keys, seen_values, causal).values();
    for (std::size_t c = 0; c < 2; ++c)
      EXPECT_NEAR(row[c], whole[static_cast<std::size_t>(t) * 2 + c], kValueTolerance);
  }
}

TEST(Attention, RefusesMoreQueriesThanSourcesWhenCausal) {
  Tape tape;
  const Tensor q = tape.input({3, 1}, {1, 2, 3}), k = tape.input({2, 1}, {1, 2});
  EXPECT_EQ(error_of<ShapeError>([&] { attention(q, k, k, {.mask = Mask::causal()}); }),
            error_of<ShapeError>([&] { composed::attention(q, k, k, {.mask = Mask::causal()}); }));
  EXPECT_NE(error_of<ShapeError>([&] { attention(q, k, k, {.mask = Mask::causal()}); }), "");
}

TEST(Attention, NamesTheQueryThatSeesNothing_F01) {
  Tape tape;
  const Tensor x = tape.variable({2, 2, 1}, {1, 2, 3, 4});
  const Bools padding = tape.bools({2, 1, 2}, std::array{true, false, false, false});
  const Scope scope(tape, "blocks.1.attn");
  const std::size_t nodes = tape.size();
  const std::string line = error_of<ShapeError>([&] { attention(x, x, x, {.mask = Mask::allow(padding)}); });
  EXPECT_TRUE(line.starts_with("[attention] query 0 of batch 1 may see no source (in blocks.1.attn). Hint: ")) << line;
  EXPECT_EQ(tape.size(), nodes);
  EXPECT_EQ(error_of<ShapeError>([&] { composed::attention(x, x, x, {.mask = Mask::allow(padding)}); }), line);
  // Each part leaves a source, the two together none: query 0 sees source 0 by causality and source 1 by `allowed`.
  const Bools second = tape.bools({2}, std::array{false, true});
  EXPECT_NE(error_of<ShapeError>([&] {
              attention(x, x, x, {.mask = Mask::causal() & Mask::allow(second)});
            }).find("query 0 of batch 0"),
            std::string::npos);
}

TEST(Attention, NeverReadsWhatNoQueryMaySee_F03) {
  const auto run = [](Real hidden) {
    Tape tape;
    const Tensor q = tape.variable({2, 2}, {1, 2, -1, Real(0.5)});
    const Tensor k = tape.variable({3, 2}, {1, 0, hidden, hidden, 0, 1}), v = tape.variable({3, 1}, {5, hidden, 7});
    const Bools allowed = tape.bools({3}, std::array{true, false, true});
    const Tensor y = attention(q, k, v, {.mask = Mask::allow(allowed), .keep_weights = true});
    tape.backward(sum(y * y));
    std::vector<Real> all = y.values();
    for (const Tensor& t : {q, k, v}) {
      const std::vector<Real> grads = t.grads();
      all.insert(all.end(), grads.begin(), grads.end());
    }
    const std::vector<Real> weights = tape.find("attention.weights").at(0).values();
    all.insert(all.end(), weights.begin(), weights.end());
    return all;
  };
  const std::vector<Real> clean = run(0);
  for (const Real poison : {kNaN, std::numeric_limits<Real>::infinity(), Real(1e30)}) {
    const std::vector<Real> poisoned = run(poison);
    for (std::size_t i = 0; i < clean.size(); ++i) EXPECT_EQ(poisoned[i], clean[i]) << i;
  }
}

TEST(Attention, GivesWeightsWithoutChangingABit) {
  rng::Generator random(rng::Stream(6, rng::Purpose::check));
  for (const Index T : {3, 70}) {
    const Arrays x{random_array({2, T, 4}, random), random_array({2, T, 4}, random), random_array({2, T, 4}, random)};
    const auto run = [&](bool by_option, bool by_tape) {
      return evaluate(
          [=](Tape& tape, In in) {
            tape.keep_weights = by_tape;
            const Tensor y = attention(in[0], in[1], in[2], {.mask = Mask::causal(), .keep_weights = by_option});
            EXPECT_EQ(tape.find("attention.weights").size(), by_option || by_tape ? 1u : 0u);
            return y;
          },
          x, Layout::packed);
    };
    const Outcome plain = run(false, false);
    for (const Outcome& asked : {run(true, false), run(false, true), run(true, true)}) {
      EXPECT_EQ(asked.y.data, plain.y.data);
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(asked.grads[i].data, plain.grads[i].data);
    }
  }
}

// L = <g, W v>: dL/dW_ij = g_i . v_j where query i sees source j, whatever made W; 0 where it does not.
TEST(Attention, GivesScoresAndTheGradientOfTheWeights) {
  rng::Generator random(rng::Stream(8, rng::Purpose::check));
  for (const Index T : {4, 70}) {
    const Index S = T + 3;
    const Array q = random_array({2, T, 4}, random), k = random_array({2, S, 4}, random);
    const Array v = random_array({S, 3}, random), g = random_array({2, T, 3}, random);
    Tape tape;
    const auto leaf = [&](const Array& x) { return tape.variable(x.shape, as_reals(x)); };
    const Tensor values = leaf(v), seed = tape.input(g.shape, as_reals(g));
    const Tensor y = attention(leaf(q), leaf(k), values, {.mask = Mask::causal(), .keep_weights = true});
    tape.backward(sum(y * seed));
    const Tensor weights = tape.find("attention.weights").at(0), scores = tape.find("attention.scores").at(0);
    const std::vector<Real> w = weights.values(), score = scores.values(), dw = weights.grads();
    for (Index b = 0, i = 0; b < 2; ++b)
      for (Index t = 0; t < T; ++t) {
        double total = 0;
        for (Index s = 0; s <= t + 3; ++s) total += std::exp(root_scaled({q, k}, {b, t, s}));
        for (Index s = 0; s < S; ++s, ++i) {
          const auto at = static_cast<std::size_t>(i);
          const bool visible = s <= t + 3;
          const double expected = root_scaled({q, k}, {b, t, s});
          double gradient = 0;
          for (Index c = 0; c < 3; ++c) gradient += g[(b * T + t) * 3 + c] * v[s * 3 + c];
          EXPECT_NEAR(w[at], visible ? std::exp(expected) / total : 0, kValueTolerance);
          EXPECT_NEAR(dw[at], visible ? gradient : 0, kDouble ? 1e-12 : 1e-4);
          if (visible)
            EXPECT_NEAR(score[at], expected, kDouble ? 1e-12 : 1e-4);
          else
            EXPECT_EQ(score[at], -std::numeric_limits<Real>::infinity());
        }
      }
  }
}

// Without a request for weights, memory grows with T: no [T, S] matrix for all heads.
TEST(Attention, UsesMemoryLinearInTheLength) {
  const auto bytes = [](Index T) {
    Tape tape;
    const std::vector<Real> zeros(static_cast<std::size_t>(T * 2));
    const auto leaf = [&] { return tape.variable({T, 2}, zeros); };
    const Tensor q = leaf(), k = leaf(), v = leaf();
    tape.backward(sum(attention(q, k, v, {.mask = Mask::causal()})));
    return static_cast<double>(tape.arena().used());
  };
  const double least = bytes(1024);
  for (const Index T : {2048, 4096, 8192, 16384})
    EXPECT_LT(bytes(T) / least, 1.02 * static_cast<double>(T) / 1024) << T;
}

TEST(Attention, RefusesATemperatureThatIsNotAbove0) {
  Tape tape;
  const Tensor x = tape.input({1, 1}, {1});
  constexpr Real kLeast = std::numeric_limits<Real>::min();
  const auto infinite = [&] { attention(x, x, x, {.scale = 1 / kLeast, .temperature = kLeast}); };
  EXPECT_TRUE(error_of<Error>(infinite).starts_with("[attention] scale / temperature is inf"));
  for (const Real t : {Real(0), Real(-1), kNaN, std::numeric_limits<Real>::infinity()}) {
    const std::string line = error_of<Error>([&] { attention(x, x, x, {.temperature = t}); });
    EXPECT_TRUE(line.starts_with("[attention] ")) << line;
  }
}

}  // namespace
}  // namespace tapehead::test
