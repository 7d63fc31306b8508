// A product as Eigen itself is called, compiled as the host driver's kernels are.
#pragma once

#include <cstdint>

namespace stepcast::bench {

/// c = a b, row by row; a: m x k, b: k x n, or n x k and transposed.
void eigen_product(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_b);

}  // namespace stepcast::bench
