#include "nn/attention.h"

#include <algorithm>
#include <cmath>

#include "autograd/error.h"
#include "nn/positions.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {
// p for each of the heads that use it: the gradient is the sum over the copies.
Tensor repeated(Tape& tape, const Parameter& p, Index copies) {
  const Tensor one = tape.param(p);
  if (copies == 1) return one;
  auto* ones = tape.scratch<Tensor>(copies);
  std::fill_n(ones, copies, one);
  return concat(std::span<const Tensor>(ones, static_cast<std::size_t>(copies)), 0);
}
}  // namespace

Tensor Projection::operator()(Tensor x) const {
  Tape& tape = x.tape();
  const Tensor w = repeated(tape, weight, copies);
  const Tensor b = bias ? repeated(tape, bias, bias_copies) : Tensor{};
  Tensor y;
  if (transposed) {
    y = linear(x, transpose(w), down ? Tensor{} : b);
    if (down) y = linear(y, transpose(tape.param(down)), b);
  } else {
    y = linear(down ? linear(x, tape.param(down)) : x, w, b);
  }
  return factor ? y * tape.param(factor) : y;
}

Tensor Projection::matrix(Tape& tape) const {
  Tensor w = repeated(tape, weight, copies);
  if (down) w = matmul(w, tape.param(down));
  if (transposed) w = transpose(w);
  return factor ? w * tape.param(factor) : w;
}

// --- making

namespace {

using Options = MultiHeadAttention::Options;

[[noreturn]] void refuse(const std::string& fact, const char* hint) {
  throw ShapeError(error_line("attention", fact, {}, hint));
}

bool shares(const Options& o, const char* what) {
  return std::find(o.share.begin(), o.share.end(), what) != o.share.end();
}

Options complete(Options o) {
  const std::string width = std::to_string(o.width), heads = std::to_string(o.heads);
  if (o.heads < 1 || o.width < 1 || (o.key_width == 0 && o.width % o.heads != 0))
    refuse("width " + width + " is not divisible by " + heads + " heads",
           "choose a width that is a multiple of the number of heads");
  if (o.source_width == 0) o.source_width = o.width;
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  if (o.heads % o.kv_heads != 0)
    refuse(heads + " heads cannot share " + std::to_string(o.kv_heads) + " heads of keys and values equally",
           "choose a number that divides the heads");
  if (o.key_width == 0) o.key_width = o.width / o.heads;
  if (o.value_width == 0) o.value_width = o.key_width;
  if (o.scale == 0) o.scale = o.scoring == ScoringKind::dot ? 1 / std::sqrt(static_cast<Real>(o.key_width)) : Real{1};
  return o;
}

// Makes the matrices of one module: shapes first, then what lies where, then numbers.
class Maker {
 public:
  Maker(Initialiser& init, const Options& options)
      : init_(init), o_(options), one_for_all_(shares(o_, "heads")), joint_(o_.source_width == o_.width) {}

  void make(MultiHeadAttention& m) {
    const bool own_k = !shares(o_, "q=k") && !shares(o_, "k=aq"), own_v = !shares(o_, "k=v");
    const Index q_rows = rows(o_.heads, o_.key_width), k_rows = own_k ? rows(o_.kv_heads, o_.key_width) : 0;
    const Index v_rows = own_v ? rows(o_.kv_heads, o_.value_width) : 0;
    // One block each for weights and biases: [q; k; v] when all read one width, else q alone and [k; v].
    const Index columns = o_.rank ? o_.rank : o_.width, source_columns = o_.rank ? o_.rank : o_.source_width;
    const Parameter first = init_.set().add({joint_ ? q_rows + k_rows + v_rows : q_rows, columns});
    const Parameter second =
        joint_ || k_rows + v_rows == 0 ? first : init_.set().add({k_rows + v_rows, source_columns});
    bias_ = o_.bias ? init_.set().add({q_rows + k_rows + v_rows}) : Parameter{};
    m.q = piece(first, 0, q_rows, o_.heads, o_.width);
    const Index at = joint_ ? q_rows : 0;
    const Index k_needs = rows(o_.kv_heads, o_.key_width), v_needs = rows(o_.kv_heads, o_.value_width);
    m.k = own_k ? piece(second, at, k_rows, o_.kv_heads, o_.source_width) : as(m.q, q_rows, k_needs, joint_, "q=k");
    m.v = own_v ? piece(second, at + k_rows, v_rows, o_.kv_heads, o_.source_width)
                : as(m.k, k_needs, v_needs, true, "k=v");
    if (shares(o_, "k=aq")) m.k.factor = init_.ones({1});
    m.o = output(m);
    if (o_.scoring == ScoringKind::additive)
      m.score = init_.normal({o_.heads, 1, o_.key_width}, 1 / std::sqrt(static_cast<double>(o_.key_width)));
    if (o_.scoring == ScoringKind::cosine) {
      // log2(L^2 - L) for sequences of L tokens (Henry et al. 2020, section 2)
      const auto L = static_cast<double>(std::max<Index>(o_.context, 2));
      m.scale = init_.constant({o_.heads, 1, 1}, static_cast<Real>(std::log2(L * L - L)));
    }
  }

 private:
  Index rows(Index heads, Index width) const { return (one_for_all_ ? 1 : heads) * width; }

  Projection piece(const Parameter& block, Index begin, Index count, Index heads, Index in) {
    Projection p;
    p.weight = block.rows(begin, begin + count);
    // Low rank: the product has the variance that a full matrix would have.
    init_.fill_normal(p.weight, o_.std);
    if (o_.rank) p.down = init_.normal({o_.rank, in}, 1 / std::sqrt(static_cast<double>(o_.rank)));
    if (bias_) p.bias = bias_.rows(bias_used_, bias_used_ + count);
    bias_used_ += bias_ ? count : 0;
    p.copies = p.bias_copies = one_for_all_ ? heads : 1;
    return p;
  }

  // The other's matrix for one that needs as many rows and reads the same width.
  Projection as(const Projection& other, Index has, Index needs, bool reads_the_same, const char* what) const {
    if (has != needs || !reads_the_same)
      refuse(std::string("share ") + what + ": the matrices have " + std::to_string(has) + " and " +
                 std::to_string(needs) + " rows, and read widths " + std::to_string(o_.width) + " and " +
                 std::to_string(o_.source_width),
             "shared matrices have the same shape: equal heads and widths");
    return other;
  }

  Projection output(const MultiHeadAttention& m) {
    const Index in = o_.heads * o_.value_width;
    const bool of_values = shares(o_, "v=o"), of_queries = shares(o_, "o=qT");
    if (!of_values && !of_queries) {
      Projection p;
      p.weight = init_.normal({o_.width, o_.rank ? o_.rank : in}, o_.output_std);
      if (o_.rank) p.down = init_.normal({o_.rank, in}, 1 / std::sqrt(static_cast<double>(o_.rank)));
      p.bias = o_.bias ? init_.zeros({o_.width}) : Parameter{};
      return p;
    }
    Projection p = of_values ? m.v : m.q;
    p.transposed = of_queries;
    p.bias_copies = 1;
    const Index out_rows = of_values ? o_.kv_heads * o_.value_width : o_.width;
    const Index in_rows = of_values ? o_.source_width : o_.heads * o_.key_width;
    if (out_rows != o_.width || in_rows != in)
      refuse("share " + std::string(of_values ? "v=o" : "o=qT") + ": the output needs [" + std::to_string(o_.width) +
                 ", " + std::to_string(in) + "], the other is [" + std::to_string(out_rows) + ", " +
                 std::to_string(in_rows) + "]",
             "shared matrices have the same shape: equal heads and widths");
    p.bias = o_.bias ? init_.zeros({o_.width}) : Parameter{};
    return p;
  }

  Initialiser& init_;
  const Options& o_;
  bool one_for_all_, joint_;
  Parameter bias_;
  Index bias_used_ = 0;
};

}  // namespace

MultiHeadAttention MultiHeadAttention::make(Initialiser& init, const Options& options,
                                            const MultiHeadAttention* shared) {
  const Options o = complete(options);
  MultiHeadAttention m;
  if (shared) {
    const Options& first = shared->options;
    if (first.heads != o.heads || first.kv_heads != o.kv_heads || first.key_width != o.key_width ||
        first.value_width != o.value_width)
      refuse("share layers: heads of one layer differ from the first one's",
             "give all layers the same heads and widths");
    m = *shared;
  } else {
    Maker(init, o).make(m);
  }
  m.options = o;
  if (o.alibi) m.slopes = alibi_slopes(o.heads);
  return m;
}

// --- computing

namespace {

// The parameter made of the rows of a, then b, when they lie so in memory; else none.
Parameter joined(const Parameter& a, const Parameter& b) {
  if (!a || !b || b.offset != a.offset + a.shape.numel() || a.shape.with(0, 0) != b.shape.with(0, 0)) return {};
  return {a.offset, a.shape.with(0, a.shape[0] + b.shape[0])};
}

// Both projections as one, or nothing when they cannot be one product.
Projection joined(const Projection& a, const Projection& b) {
  if (!a.plain() || !b.plain() || bool(a.bias) != bool(b.bias)) return {};
  Projection both;
  both.weight = joined(a.weight, b.weight);
  both.bias = joined(a.bias, b.bias);
  return bool(both.bias) == bool(a.bias) ? both : Projection{};
}

// Columns begin .. begin + heads * width - 1 of [..., T, n] as heads: [..., H, T, D], without a copy.
Tensor split_heads(Tensor x, Index begin, Index heads, Index width) {
  x = slice(x, -1, begin, begin + heads * width);
  return transpose(reshape(x, x.shape().with(-1, heads).inserted(-1, width)), -3, -2);
}

// [..., H, T, D] -> [..., T, H D]
Tensor merge_heads(Tensor x) {
  x = transpose(x, -3, -2);
  return reshape(x, x.shape().without(-1).with(-1, x.size(-1) * x.size(-2)));
}

// x / |x| over the last axis; eps keeps a row of zeros zero.
Tensor unit_rows(Tensor x) {
  constexpr Real kEps = sizeof(Real) == 8 ? Real(1e-24) : Real(1e-20);
  return tapehead::scale(rms_norm(x, {}, kEps), 1 / std::sqrt(static_cast<Real>(x.size(-1))));
}

}  // namespace

MultiHeadAttention::Heads MultiHeadAttention::project(Tensor x, Tensor source) const {
  const Options& o = options;
  const Index q_columns = o.heads * o.key_width, k_columns = o.kv_heads * o.key_width;
  const auto as_queries = [&](Tensor y) { return split_heads(y, 0, o.heads, o.key_width); };
  const auto as_keys = [&](Tensor y, Index at) { return split_heads(y, at, o.kv_heads, o.key_width); };
  const auto as_values = [&](Tensor y, Index at) { return split_heads(y, at, o.kv_heads, o.value_width); };
  const Projection kv = joined(k, v), qkv = kv.weight ? joined(q, kv) : Projection{};
  if (x.index() == source.index() && qkv.weight) {
    const Tensor all = qkv(x);  // [..., T, H D + H' D + H' Dv]
    return {as_queries(all), as_keys(all, q_columns), as_values(all, q_columns + k_columns)};
  }
  const Tensor queries = as_queries(q(x));
  if (kv.weight) {
    const Tensor both = kv(source);
    return {queries, as_keys(both, 0), as_values(both, k_columns)};
  }
  return {queries, as_keys(k(source), 0), as_values(v(source), 0)};
}

namespace {
// What the op kept, under the name of TransformerLens, too: to be seen, not changed, for z is mixed already.
void tap_kept(Tape& tape, const char* kept, const char* name) {
  const Tensor x = tape.find(kept).back();
  tape.tap(name, tape.view("view", x, x.shape(), x.strides(), 0));
}
}  // namespace

Tensor MultiHeadAttention::operator()(Tensor x, Tensor source, const AttentionContext& context) const {
  Tape& tape = x.tape();
  KeyValues* past = context.past;
  const bool itself = source.defined() && x.index() == source.index();
  // What an encoder has read does not change: its keys and values are computed with the first token alone.
  const bool known = past && !itself && past->length() > 0;
  Heads in = known ? Heads{split_heads(q(x), 0, options.heads, options.key_width), {}, {}} : project(x, source);
  if (scale) {
    in.q = unit_rows(in.q) * tape.param(scale);
    if (!known) in.k = unit_rows(in.k);
  }
  if (context.rotation.defined() && itself) {
    in.q = rope(in.q, context.rotation);
    in.k = rope(in.k, context.rotation);
  }
  if (past) {
    if (!known) past->append(in.k, in.v);
    in.k = past->keys(tape), in.v = past->values(tape);
  }
  in.q = tape.tap("hook_q", in.q);
  in.k = tape.tap("hook_k", in.k);
  in.v = tape.tap("hook_v", in.v);
  Attention how;
  how.mask = context.mask;
  if (options.window > 0 && itself) how.mask = how.mask & Mask::window(options.window);
  how.scale = options.scale;
  how.temperature = options.temperature;
  how.softcap = options.softcap;
  how.dropout = options.dropout;
  if (score) how.vector = tape.param(score);
  if (!slopes.empty() && itself) how.slopes = tape.input({options.heads}, slopes);
  Tensor mixed = attention(in.q, in.k, in.v, how);  // [..., H, T, Dv]
  if (tape.keep_weights) {
    tap_kept(tape, "attention.scores", "hook_attn_scores");
    tap_kept(tape, "attention.weights", "hook_pattern");
  }
  if (!head_mask.empty()) mixed = mixed * tape.input({options.heads, 1, 1}, head_mask);
  return o(merge_heads(tape.tap("hook_z", mixed)));
}

// --- the past

void KeyValues::Rows::append(Tensor rows, Index length) {
  const Index count = rows.size(-2), needed = length + count;
  heads = rows.size(-3);
  width = rows.size(-1);
  if (needed > capacity) {
    const Index larger = std::max(2 * capacity, needed);
    Numbers moved(static_cast<std::size_t>(heads * larger * width));
    for (Index h = 0; h < heads; ++h)
      std::copy_n(numbers.data() + h * capacity * width, length * width, moved.data() + h * larger * width);
    numbers.swap(moved);
    capacity = larger;
  }
  const std::vector<Real> added = rows.values();
  for (Index h = 0; h < heads; ++h)
    std::copy_n(added.data() + h * count * width, count * width, numbers.data() + (h * capacity + length) * width);
}

Tensor KeyValues::Rows::all(Tape& tape, Index length) {
  const Strides strides{heads * capacity * width, capacity * width, width, 1};
  return tape.external({1, heads, length, width}, strides, numbers.data());
}

void KeyValues::append(Tensor keys, Tensor values) {
  keys_.append(keys, length_);
  values_.append(values, length_);
  length_ += keys.size(-2);
}

}  // namespace tapehead::inline TAPEHEAD_REAL
