#include "nn/block.h"

#include <cmath>

namespace tapehead::inline TAPEHEAD_REAL {

Block Block::make(Initialiser& init, const ModelConfig& config, bool with_cross) {
  const Index width = config.width;
  // Every layer adds two or three branches to the residual path: their last weights start smaller, so that its
  // variance does not grow with depth (Radford et al. 2019, section 2.3).
  const double output_std = config.init_std / std::sqrt(2.0 * static_cast<double>(std::max<Index>(config.layers, 1)));
  MultiHeadAttention::Options attention;
  attention.width = width;
  attention.heads = config.heads;
  attention.bias = config.bias;
  attention.temperature = static_cast<Real>(config.temperature);
  attention.std = config.init_std;
  attention.output_std = output_std;

  Block b;
  b.norm1 = LayerNorm::make(init, width, config.bias);
  b.attn = MultiHeadAttention::make(init, attention);
  b.norm2 = LayerNorm::make(init, width, config.bias);
  if (with_cross) {
    b.cross = MultiHeadAttention::make(init, attention);
    b.norm3 = LayerNorm::make(init, width, config.bias);
  }
  const Index inner = config.feed_forward_width();
  b.mlp = {Linear::make(init, width, inner, config.bias, config.init_std),
           Linear::make(init, inner, width, config.bias, output_std), config.activation};
  b.order = config.norm_order;
  b.dropout = static_cast<Real>(config.dropout);
  return b;
}

Tensor Block::operator()(Tensor x, const Mask& mask, Tensor memory) const {
  Tape& tape = x.tape();
  const auto branch = [&](const char* norm_name, const LayerNorm& norm, const char* name, const char* out,
                          const char* sum, auto f) {
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
  branch("norm1", norm1, "attn", "hook_attn_out", "hook_resid_mid", [&](Tensor h) { return attn(h, mask); });
  if (cross)
    branch("norm2", norm2, "cross", "hook_cross_out", "hook_resid_cross",
           [&](Tensor h) { return (*cross)(h, memory); });
  branch(cross ? "norm3" : "norm2", cross ? *norm3 : norm2, "mlp", "hook_mlp_out", "hook_resid_post",
         [&](Tensor h) { return mlp(h); });
  return x;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
