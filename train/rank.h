// Agreement of two rankings.
#pragma once

#include <span>

namespace tapehead {

/// Kendall's tau-b: (concordant - discordant pairs) / sqrt((pairs not tied in a) (pairs not tied in b)), in [-1, 1]
/// (Kendall 1945). NaN when either has no two different numbers.
double kendall_tau(std::span<const double> a, std::span<const double> b);

}  // namespace tapehead
