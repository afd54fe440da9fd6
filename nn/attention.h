// Multi-head attention (Vaswani et al. 2017, section 3.2.2): learned matrices W_Q, W_K, W_V, W_O, shared by all
// positions, and H attentions side by side, each over its own D columns of the projections.
//
// One module serves as self-attention (source = x) and as cross-attention (another sequence, of another length and
// width). q, k and v lie next to each other in memory, so that what reads the same input is one product. What a variant
// shares or leaves out is a matter of which parameters its handles name.
#pragma once

#include <string>

#include "autograd/attention.h"
#include "nn/config.h"
#include "nn/linear.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// One of W_Q, W_K, W_V and W_O as it is used: a matrix of its own, another's, or made from smaller ones.
struct Projection {
  Parameter weight;         // [out, in]; low rank: [out, rank]; for all heads alike: [out / copies, in]
  Parameter bias;           // [out / bias_copies], or none
  Parameter down;           // low rank: [rank, in], W = weight down
  Parameter factor;         // [1], or none: W is factor times the matrix
  Index copies = 1;         // heads that use the same matrix
  Index bias_copies = 1;    // and the same bias: not W_O, whose bias is its own
  bool transposed = false;  // W is the transpose of [weight; ...] down

  Tensor operator()(Tensor x) const;  // [..., in] -> [..., out]
  Tensor matrix(Tape& tape) const;    // [out, in], whatever it is made of
  bool plain() const { return !down && !factor && copies == 1 && !transposed; }
  template <class V>
  void visit(V& v) const {
    v("weight", weight);
    v("bias", bias);
    v("down", down);
    v("factor", factor);
  }
};

/// Keys and values of the tokens so far, of one sequence: what attention would compute again for each new token.
class KeyValues {
 public:
  Index length() const { return length_; }
  /// Puts keys [1, H, n, D] and values [1, H, n, Dv] behind those that are there.
  void append(Tensor keys, Tensor values);
  /// All of them, [1, H, length, D] and [1, H, length, Dv], in memory of this object.
  Tensor keys(Tape& tape) { return keys_.all(tape, length_); }
  Tensor values(Tape& tape) { return values_.all(tape, length_); }

 private:
  struct Rows {
    Numbers numbers;  // [H, capacity, width]
    Index heads = 0, width = 0, capacity = 0;
    void append(Tensor rows, Index length);
    Tensor all(Tape& tape, Index length);
  };
  Rows keys_, values_;
  Index length_ = 0;
};

/// What surrounds one attention in a model.
struct AttentionContext {
  Mask mask;
  Tensor rotation;  // of the positions of x, for rotary ones
  KeyValues* past;  // keys and values from before, to which self-attention adds; nullptr: none are kept
  AttentionContext(const Mask& m = {}, Tensor r = {}, KeyValues* p = nullptr) : mask(m), rotation(r), past(p) {}
};

struct MultiHeadAttention {
  struct Options {
    Index width = 0;         // C of the queries and of the output
    Index source_width = 0;  // of what keys and values read; 0: the same
    Index heads = 1;
    Index kv_heads = 0, key_width = 0, value_width = 0;  // 0: heads, width / heads, key_width
    bool bias = true;
    Real scale = 0;  // multiplies scores; 0: 1 / sqrt(key_width), of additive and cosine scores 1
    Real temperature = 1, softcap = 0, dropout = 0;
    Index window = 0, rank = 0;
    ScoringKind scoring = ScoringKind::dot;
    bool alibi = false;
    std::vector<std::string> share = {};  // of kShares
    double std = 0.02;                    // of q, k, v
    double output_std = 0.02;             // of o
    Index context = 64;                   // the first scale of cosine scores follows from it
  };
  Options options;  // as made: nothing is 0 that stands for another
  Projection q, k, v, o;
  Parameter score;              // [H, 1, D]: the vector of additive scores
  Parameter scale;              // [H, 1, 1]: of cosine scores
  std::vector<Real> slopes;     // of ALiBi, one a head; empty: none
  std::vector<Real> head_mask;  // factor of each head's output: 0 prunes it; empty: all stay

  /// With the matrices of `shared` when there is one. Throws ShapeError when heads do not divide the width, kv_heads
  /// the heads, or matrices to be shared differ in shape.
  static MultiHeadAttention make(Initialiser& init, const Options& options, const MultiHeadAttention* shared = nullptr);

  /// x [..., T, C], source [..., S, C'] -> [..., T, C]; the mask fits weights [..., H, T, S].
  Tensor operator()(Tensor x, Tensor source, const AttentionContext& context = {}) const;
  Tensor operator()(Tensor x, const AttentionContext& context = {}) const { return (*this)(x, x, context); }

  template <class V>
  void visit(V& visitor) const {
    visitor("q", q);
    visitor("k", k);
    visitor("v", v);
    visitor("o", o);
    visitor("score", score);
    visitor("scale", scale);
  }

 private:
  struct Heads {
    Tensor q, k, v;  // [..., H, T, D], [..., H', S, D], [..., H', S, Dv]
  };
  Heads project(Tensor x, Tensor source) const;
};

}  // namespace tapehead::inline TAPEHEAD_REAL
