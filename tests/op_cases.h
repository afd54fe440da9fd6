// One row an op: what autograd/gradcheck_ops.h lists with inputs gets its naive double reference and the shapes that it
// must refuse. From a row the tests take value, gradient, broadcasting, strided inputs, empty and size-1 axes, the
// composed twin and the error messages, in both precisions (tests/autograd/op_test.cpp).
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "autograd/attention.h"
#include "autograd/gradcheck_ops.h"
#include "autograd/rng.h"
#include "tests/reference.h"

namespace tapehead::test {

using namespace reference;

/// Inputs to be refused with a ShapeError that starts with "[op]" and names `says`: unless given, every input's shape.
struct Wrong {
  Shapes inputs;
  std::vector<std::string> says = {};
  GradcheckFunction run = {};  // the row's unless given
};

struct OpCase {
  std::string op, variant;  // as in op_checks()
  Reference reference;
  std::vector<Wrong> wrong = {};
};

// --- references that share the flags, ids and targets of gradcheck_ops.h

inline Reference looked_up(const Shape& ids) {
  return [ids](const Arrays& x) {
    return generate(ids.inserted(-1, x[0].shape[1]), [&](Position at) {
      const Index c = at.back();
      at.pop_back();
      return x[0][check_id(element(ids, at), x[0].shape[0]) * x[0].shape[1] + c];
    });
  };
}

/// -sum_v q_v log p_v over counted rows, q the smoothed target; divisor 0 takes the mean.
inline Reference cross_entropy_by(double smoothing, double divisor) {
  return [=](const Arrays& x) {
    const Index V = x[0].shape[-1];
    double sum = 0, counted = 0;
    for (Index row = 0; row * V < x[0].shape.numel(); ++row) {
      const Line logits(x[0].data.begin() + row * V, x[0].data.begin() + (row + 1) * V);
      if (check_target(row, V) < 0) continue;
      ++counted;
      for (Index v = 0; v < V; ++v) {
        const double q = smoothing / static_cast<double>(V) + (v == check_target(row, V) ? 1 - smoothing : 0);
        sum -= q * (logits[static_cast<std::size_t>(v)] - log_sum_exp(logits));
      }
    }
    Array y{Shape{}};
    y[0] = counted == 0 ? 0 : sum / (divisor > 0 ? divisor : counted);
    return y;
  };
}

/// The element's number i in the batch draws it: kept when the i-th word of the pass's first stream is p 2^32 or more.
inline Reference dropped(double p) {
  return [p](const Arrays& x) {
    const rng::Stream stream(1, rng::Purpose::dropout);
    Array y = x[0];
    for (Index i = 0; i < y.shape.numel(); ++i)
      y[i] *= stream.bits(static_cast<std::uint64_t>(i)) < p * 0x1p32 ? 0 : 1 / (1 - p);
    return y;
  };
}

template <class Visible>
Reference attention_by(double scale, Visible visible) {
  return [=](const Arrays& x) {
    const Index T = x[0].shape[-2], S = x[1].shape[-2];
    const double factor = scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(x[0].shape[-1]));
    return reference::attention(x, factor,
                                [&](const Position& at) { return visible(at[at.size() - 2], at.back(), S - T); });
  };
}

// --- the table

inline void add_elementwise_cases(std::vector<OpCase>& rows) {
  const std::vector<Wrong> unequal{{{{2, 3}, {2, 4}}}, {{{3, 2}, {2, 3}}}, {{{2, 1, 3}, {4}}}};
  const auto identity = [](double x) { return x; };
  rows.insert(
      rows.end(),
      {{"add", "", binary(std::plus()), unequal},
       {"add", "with itself", unary([](double x) { return 2 * x; })},
       {"sub", "", binary(std::minus()), unequal},
       {"mul", "", binary(std::multiplies()), unequal},
       {"mul", "with itself", unary([](double x) { return x * x; })},
       {"div", "", binary(std::divides()), unequal},
       {"scale", "", unary([](double x) { return -1.5 * x; })},
       {"neg", "", unary(std::negate())},
       {"exp", "", unary([](double x) { return std::exp(x); })},
       {"log", "", unary([](double x) { return std::log(x); })},
       {"tanh", "", unary([](double x) { return std::tanh(x); })},
       {"sigmoid", "", unary(sigmoid_of)},
       {"relu", "", unary([](double x) { return x > 0 ? x : 0; })},
       {"gelu", "exact", unary([](double x) { return x * std::erfc(-x / std::sqrt(2)) / 2; })},
       {"gelu", "tanh",
        unary([](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); })},
       {"silu", "", unary([](double x) { return x * sigmoid_of(x); })},
       {"where", "",
        [](const Arrays& x) {
          const Shape shape = broadcast_by_hand(x[0].shape, x[1].shape);
          return generate(shape, [&](Position at) {
            const Array& chosen = check_flag(element(shape, at)) ? x[0] : x[1];
            return chosen[element(chosen.shape, at)];
          });
        }},
       {"where",
        "broadcast condition",
        [](const Arrays& x) {
          const Shape condition{4, 2, 1};
          return generate(broadcast_by_hand(condition, broadcast_by_hand(x[0].shape, x[1].shape)), [&](Position at) {
            const Array& chosen = check_flag(element(condition, at)) ? x[0] : x[1];
            return chosen[element(chosen.shape, at)];
          });
        },
        {{{{3}, {4}}}, {{{3, 1}, {}}, {"[4, 2, 1]", "[3, 1]"}}}},
       {"masked_fill",
        "",
        [](const Arrays& x) {
          return generate(x[0].shape, [&](Position at) {
            const Index i = element(x[0].shape, at);
            return check_flag(i) ? x[0][i] : -2.5;
          });
        },
        {{{{2, 4}},
          {"[2, 4]", "[3]"},
          [](Tape& tape, auto x) {
            return masked_fill(x[0], tape.bools({3}, std::array{true, false, true}), 0);
          }},
         {{{3}},
          {"[3]", "[1, 3]"},
          [](Tape& tape, auto x) {
            return masked_fill(x[0], tape.bools({1, 3}, std::array{true, false, true}), 0);
          }}}},
       {"masked_fill", "broadcast mask",
        [](const Arrays& x) {
          return generate(x[0].shape,
                          [&](Position at) { return check_flag(at.back()) ? x[0][element(x[0].shape, at)] : -2.5; });
        }},
       {"dropout", "evaluation", unary(identity)},
       {"dropout", "training", dropped(0.25)}});
}

inline void add_shape_cases(std::vector<OpCase>& rows) {
  const auto filled = [](Shape to) {
    return [to](const Arrays& x) {
      Array y = x[0];
      y.shape = to;
      return y;
    };
  };
  rows.insert(
      rows.end(),
      {{"reshape", "", filled({3, 2, 2}), {{{{5}}, {"[5]", "6"}}}},
       {"reshape", "empty", filled({2, 0}), {{{{3}}, {"[3]", "[2, 0]"}}}},
       {"permute",
        "",
        moved(
            [](const Shape& s) {
              return Shape{s[2], s[0], s[1]};
            },
            [](Position at, const Shape&) {
              return Position{at[1], at[2], at[0]};
            }),
        {{{{2, 3}}},
         {{{2, 3, 4}},
          {"axis 0"},
          [](Tape&, auto x) {
            return permute(x[0], {0, 0, 1});
          }},
         {{{2, 3}},
          {"[2, 3]"},
          [](Tape&, auto x) {
            return permute(x[0], {0, 2});
          }}}},
       {"transpose", "", [](const Arrays& x) { return transposed(x[0]); }, {{{{3}}}}},
       {"transpose",
        "axes",
        moved([](const Shape& s) { return s.with(0, s[-1]).with(-1, s[0]); },
              [](Position at, const Shape&) { return std::swap(at.front(), at.back()), at; }),
        {{{{2, 3}}, {"[2, 3]"}, [](Tape&, auto x) { return transpose(x[0], 0, 2); }}}},
       {"slice",
        "",
        moved([](const Shape& s) { return s.with(1, s[1] - s[1] / 2); },
              [](Position at, const Shape& s) { return at[1] += s[1] / 2, at; }),
        {{{{2, 5}}, {"[2, 5]"}, [](Tape&, auto x) { return slice(x[0], 1, 2, 6); }},
         {{{2, 5}}, {"[2, 5]"}, [](Tape&, auto x) { return slice(x[0], 1, 3, 2); }},
         {{{2, 5}}, {"[2, 5]"}, [](Tape&, auto x) { return slice(x[0], 0, -1, 1); }},
         {{{2, 5}}, {"[2, 5]"}, [](Tape&, auto x) { return slice(x[0], 2, 0, 1); }}}},
       {"slice", "nothing",
        moved([](const Shape& s) { return s.with(-2, 0); }, [](Position at, const Shape&) { return at; })},
       {"concat", "", [](const Arrays& x) { return joined(x, -1); }, {{{{2, 3}, {3, 3}}}, {{{2, 3}, {2, 3, 1}}}}},
       {"concat", "three, one twice",
        [](const Arrays& x) {
          return joined({x[0], x[1], x[0]}, 0);
        }},
       {"contiguous", "",
        moved(
            [](const Shape& s) {
              return Shape{s[1], s[2], s[0]};
            },
            [](Position at, const Shape&) {
              return Position{at[2], at[0], at[1]};
            })}});
}

inline void add_reduction_cases(std::vector<OpCase>& rows) {
  const auto all = [](double (*f)(const Line&)) {
    return [f](const Arrays& x) {
      Array y{Shape{}};
      y[0] = f(x[0].data);
      return y;
    };
  };
  rows.push_back({"sum", "all", all(total)});
  rows.push_back({"mean", "all", all(average)});
  const auto along = [&](const char* name, double (*f)(const Line&)) {
    rows.push_back({name, "axis 1", reduction(1, false, f), {{{{2}}}}});
    rows.push_back({name, "axis -2, kept", reduction(-2, true, f), {{{{2}}}}});
    rows.push_back({name, "axis 0 of a vector", reduction(0, false, f)});
    rows.push_back({name, "axis -1", reduction(-1, false, f), {{{{}}}}});
  };
  along("sum", total);
  along("mean", average);
  along("max", largest);
  along("logsumexp", log_sum_exp);
  rows.push_back({"sum", "empty axis", reduction(0, false, total)});
  rows.push_back(
      {"softmax", "", by_row([](const Line& x, std::size_t i) { return std::exp(x[i] - log_sum_exp(x)); }), {{{{}}}}});
  rows.push_back(
      {"log_softmax", "", by_row([](const Line& x, std::size_t i) { return x[i] - log_sum_exp(x); }), {{{{}}}}});
}

inline void add_product_cases(std::vector<OpCase>& rows) {
  rows.insert(rows.end(),
              {{"matmul",
                "",
                [](const Arrays& x) { return product(x[0], x[1]); },
                {{{{2, 3}, {4, 5}}}, {{{2, 3, 4}, {3, 4, 5}}}, {{{3}, {3, 2}}}, {{{2, 3}, {3}}}, {{{2, 0}, {1, 3}}}}},
               {"matmul", "with its own transpose", [](const Arrays& x) { return product(x[0], transposed(x[0])); }},
               {"linear",
                "",
                affine,
                {{{{2, 3}, {4, 5}, {4}}, {"[2, 3]", "[4, 5]"}},
                 {{{2, 3}, {4, 3}, {5}}, {"[4, 3]", "[5]"}},
                 {{{2, 3}, {4, 3}, {1}}, {"[4, 3]", "[1]"}},
                 {{{2, 3}, {3}, {3}}, {"[2, 3]", "[3]"}}}},
               {"linear", "no bias", affine, {{{{3}, {4, 2}}}}},
               {"embedding",
                "",
                looked_up({2, 4}),
                {{{{5}}},
                 {{{5, 3}},
                  {"id 5", "5 rows"},
                  [](Tape& tape, auto x) {
                    return embedding(tape.ids({2}, std::array{0, 5}), x[0]);
                  }},
                 {{{5, 3}},
                  {"id -1", "5 rows"},
                  [](Tape& tape, auto x) { return embedding(tape.ids({1}, std::array{-1}), x[0]); }}}},
               {"embedding", "no ids", looked_up({2, 0})}});
}

inline void add_norm_and_loss_cases(std::vector<OpCase>& rows) {
  const auto cross = [](Shape shape, std::vector<std::int32_t> targets) {
    return [=](Tape& tape, std::span<const Tensor> x) { return cross_entropy(x[0], tape.ids(shape, targets)); };
  };
  rows.insert(rows.end(), {{"layer_norm",
                            "",
                            layer_norm_by(1e-5),
                            {{{{2, 3}, {4}, {3}}, {"[2, 3]", "[4]"}}, {{{2, 3}, {3}, {1}}, {"[2, 3]", "[1]"}}}},
                           {"layer_norm", "gain alone", layer_norm_by(1e-5), {{{{2, 3}, {2, 3}}}, {{{}, {}}}}},
                           {"layer_norm", "bare, eps 0.1", layer_norm_by(0.1), {{{{}}}}},
                           {"rms_norm", "", rms_norm_by(1e-5), {{{{2, 3}, {4}}}, {{{2, 3}, {1}}}}},
                           {"rms_norm", "bare, eps 0.1", rms_norm_by(0.1), {{{{}}}}},
                           {"cross_entropy",
                            "",
                            cross_entropy_by(0, 0),
                            {{{{2, 3, 5}}, {"[2, 3, 5]", "[2, 2]"}, cross({2, 2}, {0, 1, 2, 3})},
                             {{{2, 5}}, {"[2, 5]", "[2, 1]"}, cross({2, 1}, {0, 1})},
                             {{{2, 5}}, {"5"}, cross({2}, {0, 5})},
                             {{{2, 5}}, {"-2"}, cross({2}, {-2, 0})}}},
                           {"cross_entropy", "smoothing 0.2", cross_entropy_by(0.2, 0)},
                           {"cross_entropy", "divisor 10", cross_entropy_by(0, 10)},
                           {"mse",
                            "",
                            [](const Arrays& x) {
                              Array y{Shape{}};
                              for (Index i = 0; i < x[0].shape.numel(); ++i) y[0] += std::pow(x[0][i] - x[1][i], 2);
                              y[0] /= static_cast<double>(x[0].shape.numel());
                              return y;
                            },
                            {{{{2, 3}, {3}}}, {{{2, 3}, {3, 2}}}, {{{1}, {}}}}}});
}

inline double root_scaled(const Arrays& x, const Position& at) {
  return dot(x, at) / std::sqrt(static_cast<double>(x[0].shape[-1]));
}
inline double root_scaled_at(const Arrays& x, const Position& at, Index) { return root_scaled(x, at); }
inline double added(const Arrays& x, const Position& at) {  // vector . tanh(q + k)
  const Array& vector = x[3];
  return over_width(x[0], x[1], at, [&](double q, double k, Index d) {
    Position of_vector = at;
    of_vector[at.size() - 2] = 0;
    of_vector.back() = d;
    return vector[element(vector.shape, of_vector)] * std::tanh(q + k);
  });
}

/// visible(query's position t + S - T, source, batch); score(x, [..., t, s], query's position)
template <class Score, class Visible>
Reference attended(Score score, Visible visible) {
  return [=](const Arrays& x) {
    const Index ahead = x[1].shape[-2] - x[0].shape[-2];
    const auto stands = [ahead](const Position& at) { return at[at.size() - 2] + ahead; };
    return reference::attention(
        x, [=](const Arrays& in, const Position& at) { return score(in, at, stands(at)); },
        [=](const Position& at) { return visible(stands(at), at.back(), at.size() > 2 ? at[0] : 0); },
        [](const Position&) { return 1.0; });
  };
}

/// Attention whose weights are dropped by the words of the generator, numbered as the weights [..., T, S] are.
inline Array attended_with_dropout(const Arrays& x, double p) {
  const rng::Stream stream(1, rng::Purpose::dropout);
  const auto leading = [](const Array& a) { return a.shape.first(a.shape.rank() - 2); };
  const Shape batch = broadcast_by_hand(broadcast_by_hand(leading(x[0]), leading(x[1])), leading(x[2]));
  const Shape weights = batch.inserted(-1, x[0].shape[-2]).inserted(-1, x[1].shape[-2]);
  return reference::attention(
      x, root_scaled, [](const Position&) { return true; },
      [&](const Position& at) {
        return stream.bits(static_cast<std::uint64_t>(element(weights, at))) < p * 0x1p32 ? 0 : 1 / (1 - p);
      });
}

inline void add_attention_cases(std::vector<OpCase>& rows) {
  const auto everything = [](Index, Index, Index) { return true; };
  const auto causal = [](Index at, Index s, Index) { return s <= at; };
  const auto allowed = [](Index t, Index s, Index) { return check_visible(t, s); };
  const std::vector<Wrong> longer{{{{3, 2}, {2, 2}, {2, 2}}, {"3", "2"}}};
  rows.insert(rows.end(), {{"attention",
                            "",
                            attention_by(0, everything),
                            {{{{3, 4}, {5, 3}, {5, 2}}, {"[3, 4]", "[5, 3]"}},
                             {{{3, 4}, {5, 4}, {6, 2}}, {"[5, 4]", "[6, 2]"}},
                             {{{2, 3, 4}, {3, 5, 4}, {3, 5, 4}}, {"[2, 3, 4]", "[3, 5, 4]"}},
                             {{{4}, {5, 4}, {5, 4}}, {"[4]"}},
                             {{{1, 2}, {0, 2}, {0, 2}}, {"query 0"}}}},
                           {"attention", "causal", attended(root_scaled_at, causal), longer},
                           {"attention", "allowed, scale, temperature", attention_by(0.7 / 0.5, allowed)}});
  const auto capped = [](double score, double cap) { return cap * std::tanh(score / cap); };
  const auto window = [](Index at, Index s, Index) { return std::abs(at - s) < 2; };
  const auto sloped = [](const Arrays& x, const Position& at, Index stands) {
    const double slope = check_slope(at.size() > 2 ? at[at.size() - 3] : 0);
    return root_scaled(x, at) - slope * static_cast<double>(std::abs(stands - at.back()));
  };
  const auto biased = [](const Arrays& x, const Position& at, Index) {
    return root_scaled(x, at) + x[3][element(x[3].shape, at)];
  };
  const auto padded = [](Index sources) {
    return [=](Index at, Index s, Index batch) { return s <= at && at - s < 3 && s < check_length(batch, sources); };
  };
  rows.insert(
      rows.end(),
      {{"attention", "window", attended(root_scaled_at, window), longer},
       {"attention", "causal, window, padding",
        [=](const Arrays& x) { return attended(root_scaled_at, padded(x[1].shape[-2]))(x); }, longer},
       {"attention", "softcap",
        attended([=](const Arrays& x, const Position& at, Index) { return capped(root_scaled(x, at), 0.8); },
                 everything)},
       {"attention", "slopes", attended(sloped, causal)},
       {"attention",
        "grouped heads",
        attended(root_scaled_at, everything),
        {{{{4, 3, 2}, {3, 3, 2}, {3, 3, 2}}, {"[4, 3, 2]", "[3, 3, 2]"}}}},
       {"attention", "grouped heads, causal, softcap, bias",
        attended([=](const Arrays& x, const Position& at,
                     Index) { return capped(root_scaled(x, at), 0.8) + x[3][element(x[3].shape, at)]; },
                 causal)},
       {"attention", "dropout", [](const Arrays& x) { return attended_with_dropout(x, 0.25); }},
       {"attention",
        "bias",
        attended(biased, everything),
        {{{{3, 2}, {4, 2}, {4, 2}, {4, 3}}, {"[4, 3]", "[3, 4]"}},
         {{{3, 2}, {4, 2}, {4, 2}, {2, 3, 4}}, {"[2, 3, 4]", "[3, 4]"}}}},
       {"attention",
        "additive",
        attended([](const Arrays& x, const Position& at, Index) { return added(x, at); }, everything),
        {{{{3, 2}, {4, 2}, {4, 2}, {1, 3}}, {"[1, 3]", "[1, 2]"}},
         {{{3, 2}, {4, 2}, {4, 2}, {2}}, {"[2]", "width 2"}},
         {{{3, 2}, {4, 2}, {4, 2}, {3, 2}}, {"[3, 2]"}}}},
       {"attention", "additive, causal, softcap",
        attended([=](const Arrays& x, const Position& at, Index) { return capped(added(x, at), 1.5); }, causal)}});
}

inline void add_position_cases(std::vector<OpCase>& rows) {
  const auto rotated = [](const Arrays& x) {
    const Index width = x[0].shape[-1], pairs = std::min<Index>(width / 2, 2);
    return generate(x[0].shape, [&](Position at) {
      const Index c = at.back(), pair = c / 2;
      if (pair >= pairs) return x[0][element(x[0].shape, at)];
      const double angle = check_angle(at[at.size() - 2], pair);
      at.back() = 2 * pair;
      const double a = x[0][element(x[0].shape, at)];
      at.back() = 2 * pair + 1;
      const double b = x[0][element(x[0].shape, at)];
      return c % 2 ? a * std::sin(angle) + b * std::cos(angle) : a * std::cos(angle) - b * std::sin(angle);
    });
  };
  const GradcheckFunction by_second = [](Tape&, std::span<const Tensor> x) { return rope(x[0], x[1]); };
  rows.insert(rows.end(), {{"rope",
                            "",
                            rotated,
                            {{{{3, 4}, {1, 1, 2}}, {}, by_second},
                             {{{1, 1}, {1, 1, 2}}, {}, by_second},
                             {{{1, 2}, {1, 2}}, {}, by_second},
                             {{{4}, {1, 1, 2}}, {"[4]"}, by_second}}}});
}

inline std::vector<OpCase> op_cases() {
  std::vector<OpCase> rows;
  add_elementwise_cases(rows);
  add_shape_cases(rows);
  add_reduction_cases(rows);
  add_product_cases(rows);
  add_norm_and_loss_cases(rows);
  add_attention_cases(rows);
  add_position_cases(rows);
  return rows;
}

}  // namespace tapehead::test
