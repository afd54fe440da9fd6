// Naive arithmetic in double for expected values: arrays, broadcasting by index, and slopes by differences. Nothing of
// the library computes here (Shape only names sizes).
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "autograd/shape.h"

namespace tapehead::reference {

struct Array {
  Shape shape;
  std::vector<double> data;

  explicit Array(const Shape& s) : shape(s), data(static_cast<std::size_t>(s.numel())) {}
  double& operator[](Index i) { return data[static_cast<std::size_t>(i)]; }
  double operator[](Index i) const { return data[static_cast<std::size_t>(i)]; }
};

using Arrays = std::vector<Array>;
using Reference = std::function<Array(const Arrays&)>;

using Position = std::vector<Index>;

/// The indices along each axis of the i-th element in row-major order.
inline Position position(const Shape& shape, Index i) {
  Position at(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    at[static_cast<std::size_t>(axis)] = i % shape[axis];
    i /= shape[axis];
  }
  return at;
}

/// The number of the element at `at` of a tensor broadcast from `shape`: axes align at the end, size 1 repeats.
inline Index element(const Shape& shape, const Position& at) {
  Index i = 0;
  const auto skipped = at.size() - static_cast<std::size_t>(shape.rank());
  for (int axis = 0; axis < shape.rank(); ++axis)
    i = i * shape[axis] + (shape[axis] == 1 ? 0 : at[skipped + static_cast<std::size_t>(axis)]);
  return i;
}

/// The shape that two broadcast to, written anew.
inline Shape broadcast_by_hand(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<Index> sizes;
  for (int axis = -rank; axis < 0; ++axis) {
    const Index sa = axis < -a.rank() ? 1 : a[axis], sb = axis < -b.rank() ? 1 : b[axis];
    sizes.push_back(sa == 1 ? sb : sa);
  }
  return {sizes.data(), rank};
}

/// An array whose element at a position is f(position).
template <class F>
Array generate(const Shape& shape, F f) {
  Array y(shape);
  for (Index i = 0; i < shape.numel(); ++i) y[i] = f(position(shape, i));
  return y;
}

/// dL/dx of every input for L = <s, f(x)>, by fourth-order differences. f is smooth within 2e-3 of x.
inline Arrays slopes(const Reference& f, Arrays x, const std::vector<double>& s) {
  const auto loss = [&] {
    const Array y = f(x);
    double sum = 0;
    for (std::size_t i = 0; i < s.size(); ++i) sum += s[i] * y.data[i];
    return sum;
  };
  Arrays dx;
  for (Array& input : x) {
    Array d(input.shape);
    for (Index i = 0; i < d.shape.numel(); ++i) {
      constexpr double h = 1e-3;
      const double at = input[i];
      double l[4];
      for (int k = 0; k < 4; ++k) input[i] = at + h * (k < 2 ? k - 2 : k - 1), l[k] = loss();
      input[i] = at;
      d[i] = (8 * (l[2] - l[1]) - (l[3] - l[0])) / (12 * h);
    }
    dx.push_back(d);
  }
  return dx;
}

// --- forms of reference

template <class F>
Reference unary(F f) {
  return [f](const Arrays& x) {
    return generate(x[0].shape, [&](Position at) { return f(x[0][element(x[0].shape, at)]); });
  };
}

template <class F>
Reference binary(F f) {
  return [f](const Arrays& x) {
    return generate(broadcast_by_hand(x[0].shape, x[1].shape),
                    [&](Position at) { return f(x[0][element(x[0].shape, at)], x[1][element(x[1].shape, at)]); });
  };
}

/// Element `at` of the result is the element of x[0] at from(at, shape of x[0]).
template <class F>
Reference moved(std::function<Shape(const Shape&)> to, F from) {
  return [=](const Arrays& x) {
    return generate(to(x[0].shape), [&](Position at) { return x[0][element(x[0].shape, from(at, x[0].shape))]; });
  };
}

/// f(the numbers along the axis) -> one number.
template <class F>
Reference reduction(int axis, bool keep, F f) {
  return [=](const Arrays& x) {
    const Shape kept = x[0].shape.with(axis, 1);
    Array y = generate(kept, [&](Position at) {
      std::vector<double> line;
      for (Index& i = at[static_cast<std::size_t>(kept.axis_index(axis))]; i < x[0].shape[axis]; ++i)
        line.push_back(x[0][element(x[0].shape, at)]);
      return f(line);
    });
    if (!keep) y.shape = kept.without(axis);
    return y;
  };
}

/// Element i of a row becomes f(row, i); gain (input 1) and bias (input 2) follow when there are any.
template <class F>
Reference by_row(F f) {
  return [f](const Arrays& x) {
    return generate(x[0].shape, [&](Position at) {
      const Index i = at.back();
      std::vector<double> row;
      for (at.back() = 0; at.back() < x[0].shape[-1]; ++at.back()) row.push_back(x[0][element(x[0].shape, at)]);
      return f(row, static_cast<std::size_t>(i)) * (x.size() > 1 ? x[1][i] : 1) + (x.size() > 2 ? x[2][i] : 0);
    });
  };
}

// --- arithmetic of one line of numbers

using Line = std::vector<double>;

inline double total(const Line& x) { return std::accumulate(x.begin(), x.end(), 0.0); }
inline double average(const Line& x) { return total(x) / static_cast<double>(x.size()); }
inline double largest(const Line& x) { return *std::max_element(x.begin(), x.end()); }
inline double log_sum_exp(const Line& x) {
  double sum = 0;
  for (double a : x) sum += std::exp(a);
  return std::log(sum);
}
inline double mean_square(const Line& x, double center) {
  double sum = 0;
  for (double a : x) sum += (a - center) * (a - center);
  return sum / static_cast<double>(x.size());
}
inline double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

inline Reference layer_norm_by(double eps) {
  return by_row(
      [=](const Line& x, std::size_t i) { return (x[i] - average(x)) / std::sqrt(mean_square(x, average(x)) + eps); });
}
inline Reference rms_norm_by(double eps) {
  return by_row([=](const Line& x, std::size_t i) { return x[i] / std::sqrt(mean_square(x, 0) + eps); });
}

// --- references of more than a line

/// [..., M, K] x [..., K, N]
inline Array product(const Array& a, const Array& b) {
  const Shape batch = broadcast_by_hand(a.shape.first(a.shape.rank() - 2), b.shape.first(b.shape.rank() - 2));
  return generate(batch.inserted(-1, a.shape[-2]).inserted(-1, b.shape[-1]), [&](Position at) {
    double sum = 0;
    for (Index k = 0; k < a.shape[-1]; ++k) {
      Position of_a = at, of_b = at;
      of_a.back() = of_b[at.size() - 2] = k;
      sum += a[element(a.shape, of_a)] * b[element(b.shape, of_b)];
    }
    return sum;
  });
}

inline Array transposed(const Array& x) {
  return generate(x.shape.with(-1, x.shape[-2]).with(-2, x.shape[-1]), [&](Position at) {
    std::swap(at.back(), at[at.size() - 2]);
    return x[element(x.shape, at)];
  });
}

inline Array affine(const Arrays& x) {
  return generate(x[0].shape.with(-1, x[1].shape[0]), [&](Position at) {
    const Index out = at.back(), in = x[0].shape[-1];
    double sum = x.size() > 2 ? x[2][out] : 0;
    for (at.back() = 0; at.back() < in; ++at.back()) sum += x[0][element(x[0].shape, at)] * x[1][out * in + at.back()];
    return sum;
  });
}

inline Array joined(const Arrays& x, int axis) {
  Index size = 0;
  for (const Array& part : x) size += part.shape[axis];
  return generate(x[0].shape.with(axis, size), [&](Position at) {
    Index& i = at[static_cast<std::size_t>(x[0].shape.axis_index(axis))];
    auto part = x.begin();
    for (; i >= part->shape[axis]; ++part) i -= part->shape[axis];
    return (*part)[element(part->shape, at)];
  });
}

/// Sum over the width of q and k of f(q_d, k_d, d), for the query and source of the score at `at` [..., t, s].
template <class F>
double over_width(const Array& q, const Array& k, const Position& at, F f) {
  Position of_q = at, of_k = at;
  of_k[at.size() - 2] = at.back();
  double sum = 0;
  for (Index d = 0; d < q.shape[-1]; ++d) {
    of_q.back() = of_k.back() = d;
    sum += f(q[element(q.shape, of_q)], k[element(k.shape, of_k)], d);
  }
  return sum;
}

inline double dot(const Arrays& x, const Position& at) {
  return over_width(x[0], x[1], at, [](double q, double k, Index) { return q * k; });
}

/// Each head of x [..., H', S, D] for `heads` / H' neighbours.
inline Array repeat_heads(const Array& x, Index heads) {
  if (x.shape.rank() < 3 || x.shape[-3] <= 1 || x.shape[-3] >= heads) return x;
  const Index group = heads / x.shape[-3];
  return generate(x.shape.with(-3, heads), [&](Position at) {
    at[at.size() - 3] /= group;
    return x[element(x.shape, at)];
  });
}

/// softmax(score) v, source by source. score(x, [..., t, s]); visible([..., t, s]): whether the query sees the source;
/// kept([..., t, s]): what dropout makes of the weight.
template <class Score, class Visible, class Kept>
Array attention(Arrays x, Score score, Visible visible, Kept kept) {
  if (x[0].shape.rank() > 2)
    for (Array& of_sources : {std::ref(x[1]), std::ref(x[2])}) of_sources = repeat_heads(of_sources, x[0].shape[-3]);
  const Array &q = x[0], &k = x[1], &v = x[2];
  const auto leading = [](const Array& a) { return a.shape.first(a.shape.rank() - 2); };
  const Shape batch = broadcast_by_hand(broadcast_by_hand(leading(q), leading(k)), leading(v));
  const Shape shape = batch.inserted(-1, q.shape[-2]).inserted(-1, v.shape[-1]);  // [..., T, Dv]
  return generate(shape, [&](const Position& at) {
    double total = 0, mixture = 0;
    for (Index s = 0; s < k.shape[-2]; ++s) {
      Position of_score = at, of_v = at;
      of_score.back() = of_v[at.size() - 2] = s;
      if (!visible(of_score)) continue;
      const double weight = std::exp(score(x, of_score));
      total += weight;
      mixture += kept(of_score) * weight * v[element(v.shape, of_v)];
    }
    return mixture / total;
  });
}

/// softmax(q k^T * factor) v
template <class Visible>
Array attention(const Arrays& x, double factor, Visible visible) {
  return attention(
      x, [factor](const Arrays& in, const Position& at) { return factor * dot(in, at); }, visible,
      [](const Position&) { return 1.0; });
}

}  // namespace tapehead::reference
