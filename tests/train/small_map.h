// Two queries of cross-attention to three pairs.
#pragma once

#include "train/attention_map.h"

namespace tapehead::test {

inline AttentionMap cross_map() {
  AttentionMap map;
  map.kind = "cross";
  map.layer = 1;
  map.head = 3;
  map.rows = 2;
  map.columns = 3;
  map.weights = {0.25f, 0.5f, 0.25f, 1, 0, 0};
  map.visible = {1, 1, 1, 1, 0, 0};
  map.row_tokens = {"|", "c"};
  map.column_tokens = {"c7", "a3", "d0"};
  map.ideal = {-1, 0};
  return map;
}

}  // namespace tapehead::test
