#include "nn/block.h"

#include <cmath>

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

MultiHeadAttention::Options attention_options(const ModelConfig& config, const LayerConfig& layer, double output_std) {
  MultiHeadAttention::Options o;
  o.width = config.width;
  o.heads = layer.heads;
  o.kv_heads = layer.kv_heads;
  o.key_width = layer.key_width;
  o.value_width = layer.value_width;
  o.bias = config.bias;
  o.scale = static_cast<Real>(layer.scale);
  o.temperature = static_cast<Real>(layer.temperature);
  o.softcap = static_cast<Real>(layer.softcap);
  o.dropout = static_cast<Real>(config.dropout);
  o.window = layer.window;
  o.rank = layer.rank;
  o.scoring = layer.scoring;
  o.alibi = config.positions == PositionKind::alibi;
  o.share = config.share;
  o.std = config.init_std;
  o.output_std = output_std;
  o.context = config.context;
  return o;
}

}  // namespace

Block Block::make(Initialiser& init, const ModelConfig& config, Index number, bool with_cross, const Block* first) {
  const LayerConfig layer = config.layer(number);
  const auto make_norm = [&] { return Norm::make(init, config.norm, config.width, config.bias); };
  // Every layer adds two or three branches to the residual path: their last weights start smaller, so that its
  // variance does not grow with depth (Radford et al. 2019, section 2.3).
  const double output_std = config.init_std / std::sqrt(2.0 * static_cast<double>(std::max<Index>(config.layers, 1)));
  const MultiHeadAttention::Options attention = attention_options(config, layer, output_std);

  Block b;
  b.norm1 = make_norm();
  b.attn = MultiHeadAttention::make(init, attention, first ? &first->attn : nullptr);
  if (with_cross || layer.feed_forward > 0) b.norm2 = make_norm();
  if (with_cross) {
    b.cross = MultiHeadAttention::make(init, attention, first ? &*first->cross : nullptr);
    if (layer.feed_forward > 0) b.norm3 = make_norm();
  }
  if (layer.feed_forward > 0)
    b.mlp = FeedForward::make(init, {.width = config.width,
                                     .inner = layer.feed_forward,
                                     .activation = layer.activation,
                                     .bias = config.bias,
                                     .std = config.init_std,
                                     .output_std = output_std});
  b.order = config.norm_order;
  b.dropout = static_cast<Real>(config.dropout);
  return b;
}

Tensor Block::operator()(Tensor x, const AttentionContext& context, Tensor memory, KeyValues* cross_past) const {
  Tape& tape = x.tape();
  const auto branch = [&](const char* norm_name, const Norm& norm, const char* name, const char* out, const char* sum,
                          auto f) {
    const auto normed = [&](Tensor input) {
      Scope scope(tape, norm_name);
      return norm(input);
    };
    const auto branch_of = [&](Tensor input) {
      Scope scope(tape, name);
      return tapehead::dropout(f(input), dropout);
    };
    const auto run = [&](Tensor input) { return tape.tap(out, branch_of(input)); };
    x = tape.tap(sum, order == NormOrder::pre ? x + run(normed(x)) : normed(x + run(x)));
  };
  branch("norm1", norm1, "attn", "hook_attn_out", "hook_resid_mid", [&](Tensor h) { return attn(h, context); });
  if (cross)
    branch("norm2", *norm2, "cross", "hook_cross_out", "hook_resid_cross", [&](Tensor h) {
      return (*cross)(h, memory, {{}, {}, cross_past});
    });
  if (mlp)
    branch(cross ? "norm3" : "norm2", cross ? *norm3 : *norm2, "mlp", "hook_mlp_out", "hook_resid_post",
           [&](Tensor h) { return (*mlp)(h); });
  else
    x = tape.tap("hook_resid_post", x);
  return x;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
