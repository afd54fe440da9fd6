// Attention weights read off a tape, head by head, and how well they match the task's rule.
#pragma once

#include "data/batch.h"
#include "nn/transformer.h"
#include "train/attention_map.h"
#include "train/head_place.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// Which attention of a model a tape's scope belongs to: "blocks.1.attn", "blocks.0.cross", "encoder.blocks.1.attn".
AttentionPlace attention_place(std::string_view scope, const Transformer& net);
/// The module there. Throws ConfigError when the model has none.
const MultiHeadAttention& attention_at(const Transformer& net, const AttentionPlace& place);

/// Every head's weights for one sequence of a batch, with its tokens and, where the rule speaks of that kind of head,
/// the ideal column of each row. Decoder layers first, then cross-attention, then the encoder's.
std::vector<AttentionMap> attention_maps(Model& model, const Batch& batch, Index sequence,
                                         const std::vector<std::string>& vocabulary);
/// The same from a tape that kept its weights, on which sequences `first` and on were recorded.
std::vector<AttentionMap> attention_maps(Tape& tape, const Model& model, const Batch& batch, Index first,
                                         Index sequence, const std::vector<std::string>& vocabulary);

struct HeadMeasure {
  std::string kind;
  std::int32_t layer = 0, head = 0;
  double pattern_match = 0;  // mean over the counted rows of all sequences; NaN where the rule does not apply
};

/// `pattern_match` of every head over a whole batch: mean of sum_j A_ij D_ij over counted rows i.
std::vector<HeadMeasure> measure_heads(Model& model, const Batch& batch);

/// All measures of every head (map_measures.h), each the mean over the sequences of a batch where it applies.
struct PatternMeasures {
  HeadPlace place;
  std::vector<double> values;  // as measure_names()
};
std::vector<PatternMeasures> measure_patterns(Model& model, const Batch& batch,
                                              const std::vector<std::string>& vocabulary);

}  // namespace tapehead::inline TAPEHEAD_REAL
