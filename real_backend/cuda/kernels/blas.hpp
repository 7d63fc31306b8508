// Matrix products by cuBLAS, said as the programs say them: row-major. Test: tests/unit/cuda_kernels_test.cpp.
#pragma once

#include <cstdint>

#include "hw_models/kernel.hpp"
#include "real_backend/cuda/lane.hpp"

namespace stepcast::real::cuda::kernels {

/// Of a batch of matrices the first one's place; rows lie `stride` elements apart, matrices `step`. `transposed`: as it lies there, columns are rows.
struct Factor {
  const void* data = nullptr;
  hw::Dtype dtype = hw::Dtype::fp32;
  std::int64_t stride = 0, step = 0;
  bool transposed = false;
};
struct Result {
  void* data = nullptr;
  hw::Dtype dtype = hw::Dtype::fp32;
  std::int64_t stride = 0, step = 0;
};

struct Product {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool accumulate = false;  // c += a b
};

/// c (m x n) = a (m x k) b (k x n), for each of the batch; in fp64 if they are, else in fp32, without rounding of fp32 factors to TF32.
void multiply(Lane& lane, const Product& product, const Factor& a, const Factor& b, const Result& c);

}  // namespace stepcast::real::cuda::kernels
