#include "train/circuits.h"

#include <cmath>

#include "autograd/error.h"
#include "autograd/kernels/packet.h"  // before Eigen: silences a false warning of g++ 12

#include <Eigen/Core>

#include "train/eigenvalues.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix matrix_of(const Model& model, const Parameter& p) {
  const Real* data = model.parameters.value(p).data();
  Matrix m(p.shape[0], p.shape[1]);
  for (Index i = 0; i < m.size(); ++i) m.data()[i] = double{data[i]};
  return m;
}

// A head's own parts: q, k, v [D, C] and o [C, D].
struct HeadMatrices {
  Matrix q, k, v, o;
};

// Taken from a tape, which makes one matrix of what a projection shares or factors.
HeadMatrices matrices_of(Model& model, const HeadPlace& place) {
  const MultiHeadAttention& a = attention_at(model.net, place.attention);
  Tape tape(model.parameters);
  NoGrad no_grad(tape);
  const auto whole = [&](const Projection& p) {
    const Tensor w = p.matrix(tape);
    const std::vector<Real> values = w.values();
    Matrix m(w.size(0), w.size(1));
    std::copy(values.begin(), values.end(), m.data());
    return m;
  };
  const Index group = a.options.heads / a.options.kv_heads;  // heads may share keys and values
  return {whole(a.q).middleRows(place.head * a.options.key_width, a.options.key_width),
          whole(a.k).middleRows(place.head / group * a.options.key_width, a.options.key_width),
          whole(a.v).middleRows(place.head / group * a.options.value_width, a.options.value_width),
          whole(a.o).middleCols(place.head * a.options.value_width, a.options.value_width)};
}

std::vector<float> floats(const Matrix& m) { return {m.data(), m.data() + m.size()}; }

// One instance of Eigen's product, whichever operands are transposed: each takes a second to compile.
Matrix product(const Matrix& a, const Matrix& b) { return a * b; }

// Of the small matrix with the same eigenvalues other than 0.
double copying_of(const Matrix& small) {
  double sum = 0, absolute = 0;
  for (const std::complex<double>& value : eigenvalues({small.data(), static_cast<std::size_t>(small.size())})) {
    sum += value.real();
    absolute += std::abs(value);
  }
  return absolute > 0 ? sum / absolute : 0;
}

}  // namespace

std::vector<Circuits> circuits(const Model& model, std::int64_t most) {
  if (model.config.vocabulary > most)
    throw ConfigError(error_line("circuits", "the vocabulary has " + std::to_string(model.config.vocabulary) +
                                                 " tokens, at most " + std::to_string(most) + " can be drawn"));
  const Matrix embed = matrix_of(model, model.net.tokens.weight);  // [V, C]
  const Matrix unembed = model.net.head ? matrix_of(model, model.net.head->weight) : embed;
  std::vector<Circuits> list;
  Model own = model;  // a tape may write to its parameters' gradients
  for (const HeadPlace& place : heads_of(model.net)) {
    const HeadMatrices h = matrices_of(own, place);
    const Matrix queries = product(embed, h.q.transpose()), keys = product(embed, h.k.transpose());
    const Matrix values = product(embed, h.v.transpose());
    const Matrix read = product(h.o.transpose(), unembed.transpose());  // [D, V]
    const Matrix scores = product(queries, keys.transpose());
    list.push_back({place, floats(scores / std::sqrt(static_cast<double>(h.q.rows()))), floats(product(values, read)),
                    copying_of(product(read, values))});
  }
  return list;
}

std::vector<Composition> compositions(const Model& model) {
  std::vector<Composition> list;
  const std::vector<HeadPlace> heads = heads_of(model.net);
  Model own = model;
  for (const HeadPlace& from : heads)
    for (const HeadPlace& to : heads) {
      if (from.attention.kind != to.attention.kind || from.attention.layer >= to.attention.layer) continue;
      const HeadMatrices a = matrices_of(own, from), b = matrices_of(own, to);
      const Matrix ov = product(a.o, a.v);              // what `from` writes for what it reads [C, C]
      const Matrix qk = product(b.q.transpose(), b.k);  // x_query^T qk x_key
      const Matrix value = product(b.o, b.v);
      const auto score = [&](const Matrix& reads) { return product(reads, ov).norm() / (reads.norm() * ov.norm()); };
      list.push_back({from, to, score(qk.transpose()), score(qk), score(value)});
    }
  return list;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
