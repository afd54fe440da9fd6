#include "train/interventions.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "autograd/error.h"

namespace tapehead::inline TAPEHEAD_REAL {

// --- names of heads

std::string name_of(const HeadPlace& place, const Transformer& net) {
  const std::string kind = net.encoder ? place.attention.kind + " " : "";
  return kind + "L" + std::to_string(place.attention.layer) + "H" + std::to_string(place.head);
}

std::vector<HeadPlace> heads_of(const Transformer& net) {
  std::vector<HeadPlace> heads;
  const auto add = [&](const char* kind, const std::vector<Block>& blocks) {
    for (std::size_t layer = 0; layer < blocks.size(); ++layer) {
      const AttentionPlace place{kind, static_cast<std::int32_t>(layer)};
      for (Index head = 0; head < attention_at(net, place).options.heads; ++head) heads.push_back({place, head});
    }
  };
  add(net.causal ? "decoder" : "encoder", net.stack.blocks);
  if (!net.encoder) return heads;
  add("cross", net.stack.blocks);
  add("encoder", net.encoder->blocks);
  return heads;
}

HeadPlace parse_head(const std::string& text, const Transformer& net) {
  const std::size_t colon = text.find(':');
  HeadPlace place{{net.causal ? "decoder" : "encoder", 0}, 0};
  if (colon != std::string::npos) place.attention.kind = text.substr(0, colon);
  const char* at = text.data() + (colon == std::string::npos ? 0 : colon + 1);
  const char* const end = text.data() + text.size();
  const auto number = [&](char letter, auto& value) {
    if (at == end || *at != letter) return false;
    const auto [next, error] = std::from_chars(at + 1, end, value);
    at = next;
    return error == std::errc();
  };
  if (!number('L', place.attention.layer) || !number('H', place.head) || at != end)
    throw ConfigError(error_line("head", in_quotes(text) + " names no head", {}, "write L0H1, or cross:L0H1"));
  if (place.attention.layer < 0 || place.head < 0 || place.head >= attention_at(net, place.attention).options.heads)
    throw ConfigError(error_line("head", "there is no head " + in_quotes(text) + " in this model", {},
                                 "heads of a layer count from 0; inspect draws them all"));
  return place;
}

// --- averages

namespace {

// The node of this name that belongs to the same attention as z.
Tensor sibling(Tensor z, std::string_view name) {
  const std::string_view scope = z.node().scope;
  for (const Tensor& found : z.tape().find(name))
    if (scope == found.node().scope) return found;
  throw Error(error_line("intervention", std::string(name) + " is not on the tape", scope));
}

// heads [B, H, T, D] -> sums [H, T, D] added to
void add_sequences(Tensor x, std::vector<Real>& sums) {
  const std::vector<Real> values = x.values();
  sums.resize(values.size() / static_cast<std::size_t>(x.size(0)));
  for (std::size_t i = 0; i < values.size(); ++i) sums[i % sums.size()] += values[i];
}

}  // namespace

std::vector<HeadAverage> average_heads(Model& model, const Batch& batch) {
  constexpr Index kSequencesAPass = 64;
  struct Sums {
    AttentionPlace place;
    std::vector<Real> outputs, weights;
    Index heads = 0;
  };
  std::vector<Sums> all;
  Tape tape(model.parameters);
  for (Index first = 0; first < batch.sequences; first += kSequencesAPass) {
    tape.reset();
    tape.keep_weights = true;
    NoGrad no_grad(tape);
    record_logits(tape, model.net, batch, first, std::min(kSequencesAPass, batch.sequences - first));
    std::size_t next = 0;
    for (const Tensor& z : tape.find("hook_z")) {
      if (next == all.size()) all.push_back({attention_place(z.node().scope, model.net), {}, {}, z.size(1)});
      add_sequences(z, all[next].outputs);
      add_sequences(sibling(z, "hook_pattern"), all[next++].weights);
    }
  }
  std::vector<HeadAverage> averages;
  const auto part = [&](const std::vector<Real>& sums, Index head, Index heads) {
    const auto size = static_cast<std::ptrdiff_t>(sums.size()) / heads;
    std::vector<Real> mean(sums.begin() + head * size, sums.begin() + (head + 1) * size);
    for (Real& x : mean) x /= static_cast<Real>(batch.sequences);
    return mean;
  };
  for (const HeadPlace& place : heads_of(model.net)) {
    const auto sums = std::ranges::find(all, place.attention, &Sums::place);
    averages.push_back(
        {place, part(sums->outputs, place.head, sums->heads), part(sums->weights, place.head, sums->heads)});
  }
  return averages;
}

// --- changes

void Interventions::zero(const HeadPlace& head) { changes_.push_back({Change::Kind::output, head, {}, 0, 0}); }

void Interventions::replace(const HeadPlace& head, std::vector<Real> output) {
  changes_.push_back({Change::Kind::output, head, std::move(output), 0, 0});
}

void Interventions::fix_pattern(const HeadPlace& head, std::vector<Real> weights) {
  changes_.push_back({Change::Kind::pattern, head, std::move(weights), 0, 0});
}

void Interventions::knock_out(const HeadPlace& head, Index query, Index key) {
  changes_.push_back({Change::Kind::cell, head, {}, query, key});
}

Tensor Interventions::tap(std::string_view name, Tensor x) const {
  if (name != "hook_z") return x;
  const Tensor z = x;
  const AttentionPlace place = attention_place(z.node().scope, net_);
  std::vector<Real> values;  // [B, H, T, D]
  for (const Change& change : changes_) {
    if (!(change.head.attention == place)) continue;
    if (values.empty()) values = z.values();
    apply(change, z, sibling(z, "hook_v"), sibling(z, "hook_pattern"), values);
  }
  return values.empty() ? z : z.tape().input(z.shape(), values);
}

void Interventions::apply(const Change& change, Tensor z, Tensor v, Tensor weights, std::vector<Real>& values) {
  const Index B = z.size(0), H = z.size(1), T = z.size(2), D = z.size(3), S = v.size(2);
  const Index group = H / v.size(1);  // heads that share values
  const auto expected = static_cast<std::size_t>(change.kind == Change::Kind::output ? T * D : T * S);
  if (!change.values.empty() && change.values.size() != expected)
    fail(z.tape(), "intervention", "this pass has other lengths than the numbers that replace the head's",
         "take them from sequences of the same length");
  if (change.kind == Change::Kind::cell && (change.query >= T || change.key >= S))
    fail(z.tape(), "intervention",
         "there is no cell " + std::to_string(change.query) + ", " + std::to_string(change.key) + " in " +
             std::to_string(T) + " x " + std::to_string(S),
         "positions count from 0");
  const std::vector<Real> all_v = v.values();
  const Real* w = weights.value();
  for (Index b = 0; b < B; ++b) {
    Real* const out = values.data() + (b * H + change.head.head) * T * D;
    const Real* const values_of = all_v.data() + (b * v.size(1) + change.head.head / group) * S * D;
    if (change.kind == Change::Kind::output) {
      for (Index i = 0; i < T * D; ++i) out[i] = change.values.empty() ? 0 : change.values[static_cast<std::size_t>(i)];
    } else if (change.kind == Change::Kind::pattern) {
      std::fill_n(out, T * D, Real{0});
      for (Index t = 0; t < T; ++t)
        for (Index s = 0; s < S; ++s)
          for (Index i = 0; i < D; ++i)
            out[t * D + i] += change.values[static_cast<std::size_t>(t * S + s)] * values_of[s * D + i];
    } else {
      const Real a = w[((b * H + change.head.head) * T + change.query) * S + change.key];
      if (!(a < 1)) fail(z.tape(), "intervention", "all of the query's weight is on the key", "knock out another cell");
      Real* row = out + change.query * D;
      for (Index i = 0; i < D; ++i) row[i] = (row[i] - a * values_of[change.key * D + i]) / (1 - a);
    }
  }
}

// --- patching

namespace {

// m of the logits of `run_on`; NaN when no row says anything.
double preference(Model& model, const Batch& run_on, const Batch& clean, const Batch& corrupt,
                  const TapObserver* observer) {
  Tape tape(model.parameters);
  NoGrad no_grad(tape);
  tape.keep_weights = observer != nullptr;
  tape.observer = observer;
  const Tensor logits = record_logits(tape, model.net, run_on, 0, 1);
  double sum = 0;
  int rows = 0;
  for (Index t = 0; t < run_on.target_length; ++t) {
    const std::int32_t a = clean.targets[static_cast<std::size_t>(t)], b = corrupt.targets[static_cast<std::size_t>(t)];
    if (a == Batch::kIgnore || b == Batch::kIgnore || a == b) continue;
    const Real* row = logits.value() + t * logits.size(2);
    sum += double{row[a]} - double{row[b]};
    ++rows;
  }
  return sum / rows;
}

Batch first_sequence(const Batch& batch) {
  Batch one = batch;
  one.sequences = 1;
  one.source.resize(static_cast<std::size_t>(batch.source_length));
  for (auto* part : {&one.inputs, &one.targets, &one.links})
    part->resize(static_cast<std::size_t>(batch.target_length));
  return one;
}

}  // namespace

std::optional<Patching> patch_heads(Model& model, const Batch& clean, const Batch& corrupt) {
  if (clean.target_length != corrupt.target_length || clean.source_length != corrupt.source_length)
    throw ConfigError(
        error_line("patch",
                   "the sequences differ in length: " + std::to_string(clean.source_length + clean.target_length) +
                       " tokens and " + std::to_string(corrupt.source_length + corrupt.target_length),
                   {}, "give two of the same length"));
  Patching result{
      preference(model, clean, clean, corrupt, nullptr), preference(model, corrupt, clean, corrupt, nullptr), {}};
  if (std::isnan(result.clean)) return std::nullopt;
  for (const HeadAverage& average : average_heads(model, first_sequence(clean))) {
    Interventions put(model.net);
    put.replace(average.place, average.output);
    const double patched = preference(model, corrupt, clean, corrupt, &put);
    result.recovered.push_back((patched - result.corrupt) / (result.clean - result.corrupt));
  }
  return result;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
