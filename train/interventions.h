// Interventions: a model run with some heads' outputs replaced, to see what depends on them.
//
// Zero and mean ablation as in Michel, Levy and Neubig (2019) and Wang et al. (2022); patching as in Meng et al.
// (2022). A head's output is its mixture z = A v, before the output projection ("hook_z"). No gradient flows through
// what was replaced.
#pragma once

#include <optional>

#include "train/measures.h"
#include "train/shards.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// "L1H0", after the kind where a model has several: "cross L1H0".
std::string name_of(const HeadPlace& place, const Transformer& net);
/// Every head, decoder layers first, then cross-attention, then the encoder's.
std::vector<HeadPlace> heads_of(const Transformer& net);
/// "L1H0", "cross:L1H0". Throws ConfigError for another text or a head that is not there.
HeadPlace parse_head(const std::string& text, const Transformer& net);

/// What a head puts out, and where it looks, in a whole batch.
struct HeadAverage {
  HeadPlace place;
  std::vector<Real> output;   // [T, D], mean over sequences
  std::vector<Real> weights;  // [T, S], mean over sequences
};
std::vector<HeadAverage> average_heads(Model& model, const Batch& batch);

/// Replaces outputs of heads while a model runs; set it as a tape's observer, with keep_weights.
class Interventions final : public TapObserver {
 public:
  explicit Interventions(const Transformer& net) : net_(net) {}
  /// z = 0
  void zero(const HeadPlace& head);
  /// z[t] = output[t], the same in every sequence; [T, D].
  void replace(const HeadPlace& head, std::vector<Real> output);
  /// z = A v with this A [T, S] in every sequence.
  void fix_pattern(const HeadPlace& head, std::vector<Real> weights);
  /// A[query, key] = 0 and the rest of the row scaled up to 1, as if the key were masked. Throws ShapeError while the
  /// model runs when there is no such cell, or when all of the weight was there.
  void knock_out(const HeadPlace& head, Index query, Index key);

  Tensor tap(std::string_view name, Tensor x) const override;

 private:
  struct Change {
    enum class Kind { output, pattern, cell } kind;
    HeadPlace head;
    std::vector<Real> values;
    Index query = 0, key = 0;
  };
  static void apply(const Change& change, Tensor z, Tensor v, Tensor weights, std::vector<Real>& values);

  const Transformer& net_;
  std::vector<Change> changes_;
};

/// What each head alone carries over from one sequence to another (activation patching, Meng et al. 2022):
/// (m_patched - m_corrupt) / (m_clean - m_corrupt), where m is the mean of logit(clean answer) - logit(corrupt answer)
/// over the rows whose answers count and differ, and m_patched that of the corrupt sequence with one head's output of
/// the clean one.
struct Patching {
  double clean = 0, corrupt = 0;  // m of the two
  std::vector<double> recovered;  // by head, as heads_of
};
/// Of the first sequence of each batch. Nothing when their answers are the same. Throws ConfigError when they differ in
/// length.
std::optional<Patching> patch_heads(Model& model, const Batch& clean, const Batch& corrupt);

}  // namespace tapehead::inline TAPEHEAD_REAL
