// Attention weights taken out of a tape, for measures, snapshots and drawing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tapehead {

/// One head's weights for one sequence.
struct AttentionMap {
  std::string kind;                    // "decoder", "encoder" or "cross"
  std::int32_t layer = 0, head = 0;    // from 0
  std::int32_t rows = 0, columns = 0;  // T queries, S sources
  std::vector<float> weights;          // [T, S]; rows sum to 1
  std::vector<std::uint8_t> visible;   // [T, S]; 0: masked
  std::vector<std::string> row_tokens, column_tokens;
  std::vector<std::int32_t> ideal;  // [T]: the column the task's rule looks at; -1: row not counted. Empty: unknown
};

/// All heads' weights for one probe sequence at one moment of training.
struct Snapshot {
  std::uint64_t step = 0;
  double loss = 0;         // of the probe batch at that step, nats a counted token
  double exact_match = 0;  // NaN when not evaluated then
  std::vector<AttentionMap> maps;
};

/// What sizes, tokens or columns of a map do not fit together, or "".
std::string fault(const AttentionMap& map);

/// Mean over counted rows of the weight on the ideal column (`pattern_match`), in [0, 1]; NaN without counted rows.
double pattern_match(const AttentionMap& map);

}  // namespace tapehead
