#include "nn/attention.h"

#include "autograd/error.h"

namespace tapehead::inline TAPEHEAD_REAL {

MultiHeadAttention MultiHeadAttention::make(Initialiser& init, const Options& options) {
  const Index width = options.width, source = options.source_width ? options.source_width : width;
  if (options.heads < 1 || width < 1 || width % options.heads != 0)
    throw ShapeError(error_line(
        "attention",
        "width " + std::to_string(width) + " is not divisible by " + std::to_string(options.heads) + " heads", {},
        "choose a width that is a multiple of the number of heads"));
  ParameterSet& set = init.set();
  // One block each for weights and biases: [q; k; v] when all read one width, else q alone and [k; v].
  const bool joint = source == width;
  const Parameter first = set.add({joint ? 3 * width : width, width});
  const Parameter kv = joint ? first.rows(width, 3 * width) : set.add({2 * width, source});
  const Parameter bias = options.bias ? set.add({3 * width}) : Parameter{};
  const auto piece = [&](Parameter weight, Index index) {
    init.fill_normal(weight, options.std);
    return Linear{weight, bias ? bias.rows(index * width, (index + 1) * width) : Parameter{}};
  };
  MultiHeadAttention m;
  m.q = piece(first.rows(0, width), 0);
  m.k = piece(kv.rows(0, width), 1);
  m.v = piece(kv.rows(width, 2 * width), 2);
  m.o = Linear::make(init, width, width, options.bias, options.output_std);
  m.heads = options.heads;
  m.temperature = options.temperature;
  return m;
}

namespace {

// The parameter made of the rows of a, then b, when they lie so in memory; else none.
Parameter joined(const Parameter& a, const Parameter& b) {
  if (!a || !b || b.offset != a.offset + a.shape.numel() || a.shape.with(0, 0) != b.shape.with(0, 0)) return {};
  return {a.offset, a.shape.with(0, a.shape[0] + b.shape[0])};
}

Linear joined(const Linear& a, const Linear& b) { return {joined(a.weight, b.weight), joined(a.bias, b.bias)}; }

// Columns begin .. end - 1 of [..., T, n C] as heads: [..., H, T, D], without a copy.
Tensor split_heads(Tensor x, Index begin, Index end, Index heads) {
  x = slice(x, -1, begin, end);
  return transpose(reshape(x, x.shape().with(-1, heads).inserted(-1, (end - begin) / heads)), -3, -2);
}

// [..., H, T, D] -> [..., T, H D]
Tensor merge_heads(Tensor x) {
  x = transpose(x, -3, -2);
  return reshape(x, x.shape().without(-1).with(-1, x.size(-1) * x.size(-2)));
}

}  // namespace

Tensor MultiHeadAttention::operator()(Tensor x, Tensor source, const Mask& mask) const {
  const Index width = q.weight.shape[0];
  const Linear kv = joined(k, v), qkv = joined(q, kv);
  Attention options;
  options.mask = mask;
  options.temperature = temperature;
  Tensor queries, keys, values;
  if (x.index() == source.index() && qkv.weight && bool(qkv.bias) == bool(q.bias)) {
    const Tensor all = qkv(x);  // [..., T, 3 C]
    queries = split_heads(all, 0, width, heads);
    keys = split_heads(all, width, 2 * width, heads);
    values = split_heads(all, 2 * width, 3 * width, heads);
  } else if (kv.weight && bool(kv.bias) == bool(k.bias)) {
    const Tensor both = kv(source);  // [..., S, 2 C]
    queries = split_heads(q(x), 0, width, heads);
    keys = split_heads(both, 0, width, heads);
    values = split_heads(both, width, 2 * width, heads);
  } else {  // matrices that are shared in another way
    queries = split_heads(q(x), 0, width, heads);
    keys = split_heads(k(source), 0, width, heads);
    values = split_heads(v(source), 0, width, heads);
  }
  Tape& tape = x.tape();
  queries = tape.tap("hook_q", queries);
  keys = tape.tap("hook_k", keys);
  values = tape.tap("hook_v", values);
  return o(merge_heads(tape.tap("hook_z", attention(queries, keys, values, options))));
}

}  // namespace tapehead::inline TAPEHEAD_REAL
