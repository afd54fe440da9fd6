// Every op of the engine. An op is one function in one file of autograd/ops/: it checks shapes, computes, and
// registers its backward rule, whose formula stands above the closure.
//
// Conventions: any number of leading axes; axes count from the end when negative; broadcasting is NumPy's; dx is
// dL/dx; an op throws ShapeError before it records anything. Inputs may be views with any strides.
#pragma once

#include <span>

#include "autograd/tape.h"

namespace tapehead::inline TAPEHEAD_REAL {

// --- arithmetic, broadcasting a and b                                               autograd/ops/arithmetic.cpp
Tensor add(Tensor a, Tensor b);
Tensor sub(Tensor a, Tensor b);
Tensor mul(Tensor a, Tensor b);
Tensor div(Tensor a, Tensor b);
Tensor scale(Tensor x, Real factor);
Tensor neg(Tensor x);
inline Tensor operator+(Tensor a, Tensor b) { return add(a, b); }
inline Tensor operator-(Tensor a, Tensor b) { return sub(a, b); }
inline Tensor operator*(Tensor a, Tensor b) { return mul(a, b); }
inline Tensor operator/(Tensor a, Tensor b) { return div(a, b); }
inline Tensor operator*(Tensor x, Real factor) { return scale(x, factor); }
inline Tensor operator-(Tensor x) { return neg(x); }

// --- one number to one number                                                       autograd/ops/elementwise.cpp
Tensor exp(Tensor x);
Tensor log(Tensor x);
Tensor tanh(Tensor x);
/// 1 / (1 + exp(-x))
Tensor sigmoid(Tensor x);
/// max(x, 0); the gradient at 0 is 0.
Tensor relu(Tensor x);
/// x Phi(x), with Phi the normal distribution function; or its tanh approximation (Hendrycks and Gimpel 2016).
enum class Gelu { exact, tanh };
Tensor gelu(Tensor x, Gelu form = Gelu::exact);
/// x sigmoid(x)
Tensor silu(Tensor x);

// --- shape; all but concat and contiguous are views that copy nothing                autograd/ops/shape.cpp
/// The same elements, in row-major order, under another shape. One size may be -1: it is computed.
Tensor reshape(Tensor x, const Shape& shape);
Tensor reshape(Tensor x, std::initializer_list<Index> sizes);
/// Axis i of the result is axis axes[i] of x.
Tensor permute(Tensor x, std::initializer_list<int> axes);
/// Swaps two axes, the last two unless said.
Tensor transpose(Tensor x, int a = -2, int b = -1);
/// Elements begin .. end - 1 along an axis.
Tensor slice(Tensor x, int axis, Index begin, Index end);
Tensor concat(std::initializer_list<Tensor> xs, int axis);
Tensor concat(std::span<const Tensor> xs, int axis);
/// x itself, or a copy that lies in memory row by row.
Tensor contiguous(Tensor x);
/// The same values; no gradient flows through.
Tensor detach(Tensor x);

// --- reductions                                                                     autograd/ops/reduce.cpp
Tensor sum(Tensor x);  // all elements, to a scalar
Tensor sum(Tensor x, int axis, bool keep_axis = false);
Tensor mean(Tensor x);
Tensor mean(Tensor x, int axis, bool keep_axis = false);
/// The largest element along an axis; the gradient goes to the first of equal ones.
Tensor max(Tensor x, int axis, bool keep_axis = false);
/// log(sum_i exp(x_i)), computed around the largest x_i so that nothing overflows.
Tensor logsumexp(Tensor x, int axis, bool keep_axis = false);

// --- over the last axis                                                             autograd/ops/softmax.cpp
/// exp(x_i) / sum_j exp(x_j)
Tensor softmax(Tensor x);
/// x_i - log(sum_j exp(x_j))
Tensor log_softmax(Tensor x);

// --- choice                                                                         autograd/ops/where.cpp
/// a where `condition`, else b; all three broadcast.
Tensor where(Bools condition, Tensor a, Tensor b);
/// x where `keep` is true, else `value`; `keep` broadcasts to x. (True means visible, everywhere.)
Tensor masked_fill(Tensor x, Bools keep, Real value);

// --- products
/// [..., M, K] x [..., K, N] -> [..., M, N]; leading axes broadcast.                  autograd/ops/matmul.cpp
Tensor matmul(Tensor a, Tensor b);
/// y = x W^T + b: x [..., in], weight [out, in] as in PyTorch, bias [out] or empty.   autograd/ops/linear.cpp
Tensor linear(Tensor x, Tensor weight, Tensor bias = {});

// --- normalisation over the last axis, gain and bias [C] or empty                   autograd/ops/norm.cpp
/// (x - mean) / sqrt(var + eps) * gain + bias, with the biased variance (Ba, Kiros and Hinton 2016, eq. 4).
Tensor layer_norm(Tensor x, Tensor gain, Tensor bias, Real eps = Real(1e-5));
/// x / sqrt(mean(x^2) + eps) * gain (Zhang and Sennrich 2019, eq. 4).
Tensor rms_norm(Tensor x, Tensor gain, Real eps = Real(1e-5));

// --- positions
/// Turns the channels (2i, 2i + 1) of position t by an angle given as (cos, sin): rotation [T, pairs, 2], constant;
/// channels beyond the pairs stay. x [..., T, D] -> the same.                          autograd/ops/rope.cpp
Tensor rope(Tensor x, Tensor rotation);

// --- tokens
/// Rows of table [V, C] chosen by ids [...]: -> [..., C]. Throws for an id outside 0 .. V - 1.  ops/embedding.cpp
Tensor embedding(Ids ids, Tensor table);
/// In training, zeroes each element with probability p and divides the rest by 1 - p; else x.   ops/dropout.cpp
/// The element's number in the whole batch draws it, so shards of a batch draw what one tape would.
Tensor dropout(Tensor x, Real p);

// --- losses, to a scalar
struct CrossEntropy {
  std::int32_t ignore = -1;  // targets of this value count neither in the sum nor in the mean
  Real label_smoothing = 0;  // e: the target distribution is (1 - e) one_hot + e / V (Szegedy 2016, section 7)
  Index divisor = 0;         // 0: the number of counted targets; a shard gives the count of the whole batch
};
/// -sum_v q_v log softmax(logits)_v, mean over counted positions, in nats. logits [..., V], targets [...].
/// With no counted target the loss is 0 and so is every gradient.                    autograd/ops/cross_entropy.cpp
Tensor cross_entropy(Tensor logits, Ids targets, const CrossEntropy& options = {});
/// mean (prediction - target)^2; shapes are equal.                                    autograd/ops/mse.cpp
Tensor mse(Tensor prediction, Tensor target);

// Twins of the fused ops, made of primitive ones: slower, shorter, the definition.     autograd/ops/composed.cpp
namespace composed {
Tensor softmax(Tensor x);
Tensor log_softmax(Tensor x);
Tensor linear(Tensor x, Tensor weight, Tensor bias = {});
Tensor layer_norm(Tensor x, Tensor gain, Tensor bias, Real eps = Real(1e-5));
Tensor rms_norm(Tensor x, Tensor gain, Real eps = Real(1e-5));
Tensor gelu(Tensor x, Gelu form = Gelu::tanh);
Tensor silu(Tensor x);
Tensor cross_entropy(Tensor logits, Ids targets, const CrossEntropy& options = {});
Tensor mse(Tensor prediction, Tensor target);
}  // namespace composed

}  // namespace tapehead::inline TAPEHEAD_REAL
