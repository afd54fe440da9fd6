// The one seam for matrix products: no op multiplies matrices by other means.
#pragma once

#include "autograd/real.h"
#include "autograd/shape.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// A matrix in memory: element (i, j) is data[i * row + j * column]. A transpose swaps the strides.
struct ConstMatrix {
  const Real* data;
  Index row, column;
  ConstMatrix transposed() const { return {data, column, row}; }
};
/// A result: element (i, j) is data[i * row + j].
struct Matrix {
  Real* data;
  Index row;
};

/// C = A B, or C += A B: A [M, K], B [K, N], C [M, N]. C overlaps neither A nor B. Allocates nothing.
/// An element is the sum over k in ascending order of fused multiply-adds (in blocks of 256), wherever it lies in the
/// matrix; of up to four rows times a transposed matrix in memory, the sum of a packet's lanes, each in that order.
void gemm(Index m, Index n, Index k, ConstMatrix a, ConstMatrix b, Matrix c, bool accumulate);

/// The same, cut into at most 8 pieces of rows or columns for the threads at hand, which changes no bit.
void gemm_in_pieces(Index m, Index n, Index k, ConstMatrix a, ConstMatrix b, Matrix c, bool accumulate);

}  // namespace tapehead::inline TAPEHEAD_REAL
