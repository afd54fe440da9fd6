// Eigenvalues of a small matrix.
#pragma once

#include <complex>
#include <span>
#include <vector>

namespace tapehead {

/// Of a square matrix of n * n numbers, rows or columns first alike, in no order (Eigen's EigenSolver).
std::vector<std::complex<double>> eigenvalues(std::span<const double> matrix);

}  // namespace tapehead
