// Every op of ops.h and attention.h with inputs to check it on: what `tapehead gradcheck` runs, and what the table of
// the tests (tests/op_cases.h) completes with reference values and wrong shapes. A new op gets a row here.
#pragma once

#include <string>
#include <vector>

#include "autograd/gradcheck.h"

namespace tapehead::inline TAPEHEAD_REAL {

using Shapes = std::vector<Shape>;

struct OpCheck {
  std::string op;              // as declared: "gelu"
  std::string variant;         // "tanh"; empty for the plain form
  std::vector<Shapes> inputs;  // one check each: an ordinary one, then broadcasting, size-1 and empty axes
  GradcheckFunction run;
  GradcheckFunction twin = {};  // the same function in namespace composed, where there is one
  double (*domain)(std::size_t input, double normal) = nullptr;

  std::string name() const { return variant.empty() ? op : op + ", " + variant; }
};

/// All of them but detach, whose gradient is by definition not the slope.
const std::vector<OpCheck>& op_checks();

/// Checks a row, and its twin, on each of its inputs; the first failure or the largest error.
GradcheckResult gradcheck(const OpCheck& check, const Gradcheck& options = {});

// The flags, ids and targets that the rows use, by row-major index, for whoever computes the same another way.
constexpr bool check_flag(Index i) { return i % 3 != 1; }
constexpr std::int32_t check_id(Index i, Index count) { return static_cast<std::int32_t>((i * 5 + 1) % count); }
constexpr std::int32_t check_target(Index i, Index count) { return i % 4 == 1 ? -1 : check_id(i, count); }
constexpr Index check_length(Index batch, Index sources) { return sources - batch % 2 * (sources / 2); }
constexpr double check_slope(Index head) { return 0.5 / static_cast<double>(head + 1); }
constexpr double check_angle(Index position, Index pair) {
  return 0.7 * static_cast<double>(position) - 0.3 * static_cast<double>(pair);
}
constexpr bool check_visible(Index query, Index source) { return source == 0 || (query + source) % 3 != 1; }

}  // namespace tapehead::inline TAPEHEAD_REAL
