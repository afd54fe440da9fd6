#include "nn/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/error.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

[[noreturn]] void refuse(const std::string& fact, const char* hint) {
  throw ConfigError(error_line("generate", fact, {}, hint));
}

void check(const Model& model, const std::vector<std::int32_t>& prompt, const std::vector<std::int32_t>& source,
           const Sampling& s) {
  if (prompt.empty() || (model.net.encoder && source.empty())) refuse("the prompt is empty", "give at least one token");
  const Index context = model.config.context;
  if (static_cast<Index>(source.size()) > context)
    refuse("the source has " + std::to_string(source.size()) + " tokens, the model was trained with " +
               std::to_string(context),
           "shorten it");
  if (!(s.temperature >= 0) || !std::isfinite(s.temperature))
    refuse("temperature is " + std::to_string(s.temperature), "give a number from 0, where 0 takes the most likely");
  if (s.top_k < 0) refuse("top-k is " + std::to_string(s.top_k), "give a number from 1, or 0 for all tokens");
  if (!(s.top_p > 0 && s.top_p <= 1)) refuse("top-p is " + std::to_string(s.top_p), "give a share above 0, at most 1");
}

}  // namespace

std::int32_t draw_token(std::span<const Real> logits, const Sampling& sampling, double uniform) {
  if (!std::ranges::all_of(logits, [](Real x) { return std::isfinite(x); }))
    throw Error(error_line("generate", "the logits are not finite", {},
                           "the model's weights are damaged or its training diverged"));
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (sampling.temperature == 0) return static_cast<std::int32_t>(largest - logits.begin());

  std::vector<std::int32_t> order(logits.size());  // by falling likelihood
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int32_t id) { return double{logits[static_cast<std::size_t>(id)]}; };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return logit(a) > logit(b); });
  if (sampling.top_k > 0) order.resize(std::min(order.size(), static_cast<std::size_t>(sampling.top_k)));
  std::vector<double> shares;
  shares.reserve(order.size());
  for (const std::int32_t id : order) shares.push_back(std::exp((logit(id) - double{*largest}) / sampling.temperature));
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);

  double held = 0;
  std::size_t count = 0;  // of tokens that hold top_p of what top_k left
  while (count < shares.size() && (count == 0 || held < sampling.top_p * total)) held += shares[count++];
  double below = uniform * held;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (below < shares[i]) return order[i];
    below -= shares[i];
  }
  return order[count - 1];
}

Generated generate(Model& model, std::vector<std::int32_t> prompt, const std::vector<std::int32_t>& source, Index count,
                   const Sampling& sampling) {
  check(model, prompt, source, sampling);
  const auto context = static_cast<std::size_t>(model.config.context);
  const rng::Stream random(sampling.seed, rng::Purpose::sampling);
  Generated said;
  Past past;
  Tape tape(model.parameters);
  std::vector<std::int32_t>& all = prompt;
  for (Index i = 0; i < count; ++i) {
    tape.reset();
    NoGrad no_grad(tape);
    if (all.size() > context) past = {};  // every token has moved to another position
    const std::size_t seen = all.size() > context ? all.size() - context : static_cast<std::size_t>(past.length);
    if (all.size() > context) said.forgotten = static_cast<Index>(seen);
    const std::span<const std::int32_t> fresh = std::span(all).subspan(seen);
    const Ids inputs = tape.ids({1, static_cast<Index>(fresh.size())}, fresh);
    const Ids sources = source.empty() ? Ids{} : tape.ids({1, static_cast<Index>(source.size())}, source);
    const Tensor logits = model.net(inputs, sources, &past);
    const auto V = static_cast<std::size_t>(logits.size(-1));
    const Real* last = logits.value() + (fresh.size() - 1) * V;
    const std::int32_t token = draw_token({last, V}, sampling, random.uniform(static_cast<std::uint64_t>(i)));
    all.push_back(token);
    said.tokens.push_back(token);
    if (sampling.stop == token) break;
  }
  return said;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
