#include "train/attention_map.h"

#include <limits>

namespace tapehead {

std::string fault(const AttentionMap& map) {
  if (map.kind != "decoder" && map.kind != "encoder" && map.kind != "cross") return "kind is unknown";
  if (map.layer < 0 || map.head < 0) return "layer or head is negative";
  if (map.rows < 1 || map.columns < 1) return "rows or columns are none";
  const auto rows = static_cast<std::size_t>(map.rows), columns = static_cast<std::size_t>(map.columns);
  if (map.weights.size() != rows * columns) return "weights are not rows x columns";  // below 2^62: no overflow
  if (map.visible.size() != rows * columns) return "visible is not rows x columns";
  if (map.row_tokens.size() != rows || map.column_tokens.size() != columns)
    return "tokens do not name rows and columns";
  if (!map.ideal.empty() && map.ideal.size() != rows) return "ideal is not one column a row";
  for (const std::int32_t column : map.ideal)
    if (column < -1 || column >= map.columns) return "ideal is outside the columns";
  return "";
}

double pattern_match(const AttentionMap& map) {
  double sum = 0;
  std::int64_t counted = 0;
  for (std::size_t row = 0; row < map.ideal.size(); ++row) {
    if (map.ideal[row] < 0) continue;
    sum += static_cast<double>(
        map.weights[row * static_cast<std::size_t>(map.columns) + static_cast<std::size_t>(map.ideal[row])]);
    ++counted;
  }
  return counted ? sum / static_cast<double>(counted) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace tapehead
