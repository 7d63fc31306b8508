// See blas.hpp.
#include "real_backend/cuda/kernels/blas.hpp"

#include <limits>
#include <string>

namespace stepcast::real::cuda::kernels {
namespace {

cudaDataType type_of(hw::Dtype dtype) {
  switch (dtype) {
    case hw::Dtype::fp64: return CUDA_R_64F;
    case hw::Dtype::fp32: return CUDA_R_32F;
    case hw::Dtype::bf16: return CUDA_R_16BF;
    default: throw std::runtime_error(std::string("cuBLAS multiplies fp64, fp32 and bf16, not ") + hw::name(dtype));
  }
}

int number(std::int64_t value) {
  if (value > std::numeric_limits<int>::max()) throw std::runtime_error("a matrix with " + std::to_string(value) + " rows or columns is too large for cuBLAS");
  return static_cast<int>(value);
}

/// One and zero, or one and one, in the type of the sums.
template <class S>
struct Factors {
  S alpha = 1, beta;
};

/// A row-major matrix is the transpose of the column-major one at the same place, so c' = b' a' is asked for.
template <class S>
void multiply_in(cublasComputeType_t compute, Lane& lane, const Product& p, const Factor& a, const Factor& b, const Result& c) {
  const Factors<S> factors{.beta = S(p.accumulate ? 1 : 0)};
  const auto operation = [](const Factor& f) { return f.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  check(cublasGemmStridedBatchedEx(lane.blas(), operation(b), operation(a), number(p.n), number(p.m), number(p.k), &factors.alpha, b.data, type_of(b.dtype),
                                   number(b.stride), b.step, a.data, type_of(a.dtype), number(a.stride), a.step, &factors.beta, c.data, type_of(c.dtype),
                                   number(c.stride), c.step, number(p.batch), compute, CUBLAS_GEMM_DEFAULT),
        "cublasGemmStridedBatchedEx");
}

}  // namespace

void multiply(Lane& lane, const Product& product, const Factor& a, const Factor& b, const Result& c) {
  if (product.m == 0 || product.n == 0) return;
  if (c.dtype == hw::Dtype::fp64) multiply_in<double>(CUBLAS_COMPUTE_64F, lane, product, a, b, c);
  else multiply_in<float>(CUBLAS_COMPUTE_32F, lane, product, a, b, c);
}

}  // namespace stepcast::real::cuda::kernels
