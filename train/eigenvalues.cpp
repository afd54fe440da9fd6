#include "train/eigenvalues.h"

#include <cmath>

#include "autograd/kernels/packet.h"  // before Eigen: silences a false warning of g++ 12

#include <Eigen/Eigenvalues>

namespace tapehead {

std::vector<std::complex<double>> eigenvalues(std::span<const double> matrix) {
  const auto n = std::lround(std::sqrt(static_cast<double>(matrix.size())));
  const auto values = Eigen::Map<const Eigen::MatrixXd>(matrix.data(), n, n).eigenvalues();
  return {values.data(), values.data() + values.size()};
}

}  // namespace tapehead
