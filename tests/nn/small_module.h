// A small module of multi-head attention and matrices in double to hold against it.
#pragma once

#include <gtest/gtest.h>

#include "nn/attention.h"

namespace tapehead::test {

using Matrix = std::vector<std::vector<double>>;  // [rows][columns]

inline Matrix drawn(Index rows, Index columns, std::uint64_t seed) {
  const rng::Stream random(seed, rng::Purpose::check);
  Matrix m(static_cast<std::size_t>(rows), std::vector<double>(static_cast<std::size_t>(columns)));
  std::uint64_t i = 0;
  for (auto& row : m)
    for (double& x : row) x = static_cast<Real>(random.normal(i++));
  return m;
}

inline Tensor on_tape(Tape& tape, const Matrix& m) {
  std::vector<Real> flat;
  for (const auto& row : m) flat.insert(flat.end(), row.begin(), row.end());
  return tape.input({static_cast<Index>(m.size()), static_cast<Index>(m[0].size())}, flat);
}

// x W^T + b
inline Matrix projected(const Matrix& x, const Projection& layer, const ParameterSet& set) {
  const auto w = set.value(layer.weight);
  const std::size_t in = x[0].size(), out = w.size() / in;
  Matrix y;
  for (const auto& row : x) {
    std::vector<double> result(out);
    for (std::size_t o = 0; o < out; ++o) {
      if (layer.bias) result[o] = double{set.value(layer.bias)[o]};
      for (std::size_t i = 0; i < in; ++i) result[o] += double{w[o * in + i]} * row[i];
    }
    y.push_back(result);
  }
  return y;
}

inline MultiHeadAttention::Options sharing(std::vector<std::string> share) {
  MultiHeadAttention::Options o;
  o.width = 8;
  o.heads = 2;
  o.bias = false;
  o.std = o.output_std = 0.5;
  o.share = std::move(share);
  return o;
}

struct Computed {
  ParameterSet set;
  MultiHeadAttention module;

  explicit Computed(const MultiHeadAttention::Options& options) {
    Initialiser init(set, 7);
    module = MultiHeadAttention::make(init, options);
  }
  Matrix value(const Parameter& p) { return as_matrix(p, set.value(p)); }
  Matrix grad(const Parameter& p) { return as_matrix(p, set.grad(p)); }
  void fill(const Parameter& p, const Matrix& m) {
    auto to = set.value(p).begin();
    for (const auto& row : m)
      for (const double x : row) *to++ = static_cast<Real>(x);
  }
  /// The output for a fixed input; gradients of a fixed loss.
  std::vector<Real> output_and_gradients() {
    Tape tape(set);
    const Tensor y = module(on_tape(tape, drawn(5, 8, 1)), Mask::causal());
    tape.backward(sum(y * on_tape(tape, drawn(5, 8, 2))));
    return y.values();
  }

 private:
  static Matrix as_matrix(const Parameter& p, std::span<Real> numbers) {
    const auto rows = static_cast<std::size_t>(p.shape[0]), columns = numbers.size() / rows;
    Matrix m(rows, std::vector<double>(columns));
    for (std::size_t i = 0; i < numbers.size(); ++i) m[i / columns][i % columns] = double{numbers[i]};
    return m;
  }
};

inline void expect_same_output(Computed& a, Computed& b) {
  const std::vector<Real> x = a.output_and_gradients(), y = b.output_and_gradients();
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], sizeof(Real) == 8 ? 1e-13 : 1e-5) << i;
}

}  // namespace tapehead::test
