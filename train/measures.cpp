#include "train/measures.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "autograd/error.h"
#include "train/map_measures.h"
#include "train/shards.h"

namespace tapehead::inline TAPEHEAD_REAL {

AttentionPlace attention_place(std::string_view scope, const Transformer& net) {
  const auto number = scope.find("blocks.") + 7;
  const auto layer = static_cast<std::int32_t>(std::atoi(scope.data() + number));
  if (scope.starts_with("encoder.")) return {"encoder", layer};
  if (scope.ends_with("cross")) return {"cross", layer};
  return {net.causal ? "decoder" : "encoder", layer};
}

const MultiHeadAttention& attention_at(const Transformer& net, const AttentionPlace& place) {
  const Stack& stack = place.kind == "encoder" && net.encoder ? *net.encoder : net.stack;
  const bool known =
      place.kind == "cross" || place.kind == (&stack == &net.stack && net.causal ? "decoder" : "encoder");
  const auto layer = static_cast<std::size_t>(place.layer);
  if (!known || layer >= stack.blocks.size() || (place.kind == "cross" && !stack.blocks[layer].cross))
    throw ConfigError(
        error_line("attention", "the model has no " + place.kind + " attention in layer " + std::to_string(place.layer),
                   {}, "layers count from 0; inspect draws every head"));
  return place.kind == "cross" ? *stack.blocks[layer].cross : stack.blocks[layer].attn;
}

namespace {

// Columns of the ideal pattern name positions of the source: those of the model's one sequence, or of the encoder's.
bool rule_applies(const AttentionPlace& place, const Transformer& net) {
  return (place.kind == "cross") == net.encoder.has_value();
}

// Calls f(place, weights [B, H, T, S]) for each attention of sequences first .. first + count - 1.
template <class F>
void for_each_attention(Model& model, const Batch& batch, Index first, Index count, F f) {
  Tape tape(model.parameters);
  NoGrad no_grad(tape);
  tape.keep_weights = true;
  record_logits(tape, model.net, batch, first, count);
  for (const Tensor& weights : tape.find("hook_pattern")) f(attention_place(weights.node().scope, model.net), weights);
}

std::vector<std::string> token_names(const std::vector<std::int32_t>& ids, Index first, Index count,
                                     const std::vector<std::string>& vocabulary) {
  std::vector<std::string> names;
  for (Index i = first; i < first + count; ++i)
    names.push_back(vocabulary.at(static_cast<std::size_t>(ids[static_cast<std::size_t>(i)])));
  return names;
}

// Scores of the same attention: -inf where masked, by causality, a window or padding.
const Real* scores_beside(Tape& tape, Tensor weights) {
  const std::string_view scope = weights.node().scope;
  for (const Tensor& scores : tape.find("hook_attn_scores"))
    if (scope == scores.node().scope) return scores.value();
  throw Error(error_line("attention", "the scores are not on the tape", scope));
}

int order_of(const std::string& kind) { return kind == "decoder" ? 0 : kind == "cross" ? 1 : 2; }

template <class Head>
void sort_heads(std::vector<Head>& heads) {
  std::stable_sort(heads.begin(), heads.end(), [](const Head& a, const Head& b) {
    return std::pair(order_of(a.kind), a.layer) < std::pair(order_of(b.kind), b.layer);
  });
}

}  // namespace

std::vector<AttentionMap> attention_maps(Tape& tape, const Model& model, const Batch& batch, Index first,
                                         Index sequence, const std::vector<std::string>& vocabulary) {
  std::vector<AttentionMap> maps;
  const auto targets = token_names(batch.inputs, sequence * batch.target_length, batch.target_length, vocabulary);
  const auto sources = token_names(batch.source, sequence * batch.source_length, batch.source_length, vocabulary);
  for (const Tensor& weights : tape.find("hook_pattern")) {
    const AttentionPlace place = attention_place(weights.node().scope, model.net);
    AttentionMap map;
    map.kind = place.kind;
    map.layer = place.layer;
    map.rows = static_cast<std::int32_t>(weights.size(2));
    map.columns = static_cast<std::int32_t>(weights.size(3));
    const bool reads_source = model.net.encoder && place.kind == "encoder";
    map.row_tokens = reads_source ? sources : targets;
    map.column_tokens = reads_source || place.kind == "cross" ? sources : targets;
    if (rule_applies(place, model.net))
      map.ideal.assign(batch.links.begin() + sequence * batch.target_length,
                       batch.links.begin() + (sequence + 1) * batch.target_length);
    const Index cells = weights.size(2) * weights.size(3), at = (sequence - first) * weights.size(1) * cells;
    const Real* of_sequence = weights.value() + at;
    const Real* scores = scores_beside(tape, weights) + at;
    for (Index head = 0; head < weights.size(1); ++head) {
      map.head = static_cast<std::int32_t>(head);
      map.visible.clear();
      for (Index i = 0; i < cells; ++i)
        map.visible.push_back(scores[head * cells + i] != -std::numeric_limits<Real>::infinity());
      map.weights.assign(of_sequence + head * cells, of_sequence + (head + 1) * cells);
      maps.push_back(map);
    }
  }
  sort_heads(maps);
  return maps;
}

std::vector<AttentionMap> attention_maps(Model& model, const Batch& batch, Index sequence,
                                         const std::vector<std::string>& vocabulary) {
  Tape tape(model.parameters);
  NoGrad no_grad(tape);
  tape.keep_weights = true;
  record_logits(tape, model.net, batch, sequence, 1);
  return attention_maps(tape, model, batch, sequence, sequence, vocabulary);
}

std::vector<HeadMeasure> measure_heads(Model& model, const Batch& batch) {
  constexpr Index kSequencesAPass = 64;
  std::vector<HeadMeasure> heads;
  for (Index first = 0; first < batch.sequences; first += kSequencesAPass) {
    std::size_t next = 0;
    const Index count = std::min(kSequencesAPass, batch.sequences - first);
    for_each_attention(model, batch, first, count, [&](const AttentionPlace& place, Tensor weights) {
      const Index rows = weights.size(2), columns = weights.size(3);
      for (Index head = 0; head < weights.size(1); ++head, ++next) {
        if (first == 0) heads.push_back({place.kind, place.layer, static_cast<std::int32_t>(head), 0});
        for (Index b = 0; b < count && rule_applies(place, model.net); ++b) {
          const Real* map = weights.value() + (b * weights.size(1) + head) * rows * columns;
          const std::int32_t* link = batch.links.data() + (first + b) * batch.target_length;
          for (Index t = 0; t < rows; ++t)
            if (link[t] >= 0) heads[next].pattern_match += double{map[t * columns + link[t]]};
        }
        if (!rule_applies(place, model.net) || batch.counted == 0)
          heads[next].pattern_match = std::numeric_limits<double>::quiet_NaN();
      }
    });
  }
  for (HeadMeasure& head : heads) head.pattern_match /= static_cast<double>(std::max<Index>(batch.counted, 1));
  sort_heads(heads);
  return heads;
}

std::vector<PatternMeasures> measure_patterns(Model& model, const Batch& batch,
                                              const std::vector<std::string>& vocabulary) {
  std::vector<PatternMeasures> heads;
  std::vector<std::vector<int>> counts;
  Tape tape(model.parameters);
  NoGrad no_grad(tape);
  tape.keep_weights = true;
  record_logits(tape, model.net, batch, 0, batch.sequences);
  for (Index b = 0; b < batch.sequences; ++b) {
    std::size_t next = 0;
    for (const AttentionMap& map : attention_maps(tape, model, batch, 0, b, vocabulary)) {
      const std::vector<double> values = as_list(measure(map));
      if (next == heads.size()) {
        heads.push_back({{{map.kind, map.layer}, map.head}, std::vector<double>(values.size())});
        counts.emplace_back(values.size());
      }
      for (std::size_t i = 0; i < values.size(); ++i)
        if (!std::isnan(values[i])) heads[next].values[i] += values[i], ++counts[next][i];
      ++next;
    }
  }
  for (std::size_t h = 0; h < heads.size(); ++h)
    for (std::size_t i = 0; i < counts[h].size(); ++i) heads[h].values[i] /= counts[h][i];  // 0 / 0: applies nowhere
  return heads;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
