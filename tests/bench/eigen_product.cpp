// See eigen_product.hpp.
#include "bench/eigen_product.hpp"

#include <Eigen/Core>

namespace stepcast::bench {

void eigen_product(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_b) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Matrix> left(a, m, k);
  Eigen::Map<Matrix> out(c, m, n);
  if (transpose_b) out.noalias() = left * Eigen::Map<const Matrix>(b, n, k).transpose();
  else out.noalias() = left * Eigen::Map<const Matrix>(b, k, n);
}

}  // namespace stepcast::bench
