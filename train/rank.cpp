#include "train/rank.h"

#include <cmath>
#include <cstddef>
#include <limits>

namespace tapehead {

double kendall_tau(std::span<const double> a, std::span<const double> b) {
  double balance = 0, untied_a = 0, untied_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const auto x = static_cast<double>((a[i] > a[j]) - (a[i] < a[j]));
      const auto y = static_cast<double>((b[i] > b[j]) - (b[i] < b[j]));
      balance += x * y;
      untied_a += x * x;
      untied_b += y * y;
    }
  if (untied_a == 0 || untied_b == 0) return std::numeric_limits<double>::quiet_NaN();
  return balance / std::sqrt(untied_a * untied_b);
}

}  // namespace tapehead
