// What the lessons with chosen matrices share: setting entries, and maps of attention that arithmetic predicts.
#pragma once

#include <array>
#include <cmath>
#include <cstdio>

#include "nn/transformer.h"

namespace tapehead::by_hand {

/// Every parameter 0.
inline void clear(Model& model) { std::fill_n(model.parameters.values(), model.parameters.size(), Real{0}); }
/// Sets one entry of a matrix.
inline void put(Model& model, const Parameter& p, Index row, Index column, double x) {
  model.parameters.value(p)[static_cast<std::size_t>(row * p.shape[1] + column)] = static_cast<Real>(x);
}

template <std::size_t T>
using Map = std::array<std::array<double, T>, T>;  // [query][source]

/// The weights [..., T, T] of one head.
template <std::size_t T>
Map<T> map_of(Tensor weights) {
  Map<T> map;
  for (std::size_t t = 0; t < T; ++t)
    for (std::size_t s = 0; s < T; ++s) map[t][s] = double{weights.value()[t * T + s]};
  return map;
}

/// Row t is the softmax of its scores for sources 0 .. t.
template <std::size_t T, class F>
Map<T> softmax_of(F score) {
  Map<T> map{};
  for (std::size_t t = 0; t < T; ++t) {
    double total = 0;
    for (std::size_t s = 0; s <= t; ++s) total += map[t][s] = std::exp(score(t, s));
    for (std::size_t s = 0; s <= t; ++s) map[t][s] /= total;
  }
  return map;
}

template <std::size_t T>
bool is_near(const Map<T>& a, const Map<T>& b) {
  for (std::size_t t = 0; t < T; ++t)
    for (std::size_t s = 0; s < T; ++s)
      if (std::abs(a[t][s] - b[t][s]) > 1e-5) return false;
  return true;
}

/// Side by side, in percent; a row for each token of the sequence.
template <std::size_t T>
void draw(const std::array<std::int32_t, T>& sequence, const Map<T>& a, const Map<T>& b) {
  for (std::size_t t = 0; t < T; ++t) {
    std::printf("  %d", sequence[t]);
    for (const Map<T>* map : {&a, &b}) {
      std::printf("   ");
      for (std::size_t s = 0; s < T; ++s) s <= t ? std::printf("%4.0f", 100 * (*map)[t][s]) : std::printf("   .");
    }
    std::printf("\n");
  }
}

}  // namespace tapehead::by_hand
