// Naive arithmetic in double for expected values: arrays, broadcasting by index, and slopes by differences. Nothing of
// the library computes here (Shape only names sizes).
#pragma once

#include <cmath>
#include <functional>
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
inline Shape broadcast(const Shape& a, const Shape& b) {
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

/// softmax(q k^T * factor) v, source by source. `visible(position of the score)`: whether the query sees the source.
template <class Visible>
Array attention(const Arrays& x, double factor, Visible visible) {
  const Array &q = x[0], &k = x[1], &v = x[2];
  const Index S = k.shape[-2], D = q.shape[-1];
  const auto leading = [](const Array& a) { return a.shape.first(a.shape.rank() - 2); };
  const Shape batch = broadcast(broadcast(leading(q), leading(k)), leading(v));
  const Shape shape = batch.inserted(-1, q.shape[-2]).inserted(-1, v.shape[-1]);  // [..., T, Dv]
  return generate(shape, [&](Position at) {
    const Index c = at.back();
    double total = 0, mixture = 0;
    for (Index s = 0; s < S; ++s) {
      double score = 0;
      for (Index d = 0; d < D; ++d) {
        Position of_q = at, of_k = at;
        of_q.back() = of_k.back() = d;
        of_k[at.size() - 2] = s;
        score += q[element(q.shape, of_q)] * k[element(k.shape, of_k)];
      }
      Position of_score = at, of_v = at;
      of_score.back() = of_v[at.size() - 2] = s;
      if (!visible(of_score)) continue;
      of_v.back() = c;
      const double weight = std::exp(score * factor);
      total += weight;
      mixture += weight * v[element(v.shape, of_v)];
    }
    return mixture / total;
  });
}

}  // namespace tapehead::reference
