// cuBLAS: products by Eigen.
#include <cublas_v2.h>

#include <Eigen/Core>
#include <string>

#include "tests/fakes/gpu.hpp"

using namespace stepcast::fakes;

namespace {

template <class T>
using Matrix = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>, 0, Eigen::OuterStride<>>;

/// A column-major matrix of a batch in the GPU's memory.
struct Operand {
  const void* data;
  cudaDataType type;
  long long rows, columns, stride, step;

  [[nodiscard]] long long bytes() const { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }
  /// Touches it column by column.
  template <class T>
  Matrix<T> at(const Stream::Running& now, long long number, bool write) const {
    const auto* begin = static_cast<const std::byte*>(data) + number * step * bytes();
    std::byte* real = nullptr;
    for (long long c = columns - 1; c >= 0; --c)
      real = now.gpu.memory.touch(begin + c * stride * bytes(), static_cast<std::size_t>(rows * bytes()), write, now.toucher());
    return {reinterpret_cast<T*>(real), rows, columns, Eigen::OuterStride<>(stride)};
  }
  template <class S>
  Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> read(const Stream::Running& now, long long number) const {
    if (type == CUDA_R_64F) return at<double>(now, number, false).template cast<S>();
    if (type == CUDA_R_32F) return at<float>(now, number, false).template cast<S>();
    return at<Eigen::bfloat16>(now, number, false).template cast<S>();
  }
  template <class S>
  void write(const Stream::Running& now, long long number, const Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>& value) const {
    if (type == CUDA_R_64F) at<double>(now, number, true) = value.template cast<double>();
    else if (type == CUDA_R_32F) at<float>(now, number, true) = value.template cast<float>();
    else at<Eigen::bfloat16>(now, number, true) = value.template cast<Eigen::bfloat16>();
  }
};

struct Product {
  Operand a, b, c;
  bool transpose_a, transpose_b;
  double alpha, beta;
  int batch;

  template <class S>
  void run(const Stream::Running& now) const {
    for (int i = 0; i < batch; ++i) {
      const auto left = a.read<S>(now, i), right = b.read<S>(now, i);
      Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> product =
          transpose_a ? (transpose_b ? (left.transpose() * right.transpose()).eval() : (left.transpose() * right).eval())
                      : (transpose_b ? (left * right.transpose()).eval() : (left * right).eval());
      product *= static_cast<S>(alpha);
      if (beta != 0) product += static_cast<S>(beta) * c.read<S>(now, i);
      c.write<S>(now, i, product);
    }
  }
};

/// Of the combinations that cuBLAS documents those of equal factors.
bool supported(const Product& p, cublasComputeType_t compute) {
  if (p.a.type != p.b.type) return false;
  if (compute == CUBLAS_COMPUTE_64F) return p.a.type == CUDA_R_64F && p.c.type == CUDA_R_64F;
  return (p.a.type == CUDA_R_32F && p.c.type == CUDA_R_32F) || (p.a.type == CUDA_R_16BF && (p.c.type == CUDA_R_16BF || p.c.type == CUDA_R_32F));
}

cublasStatus_t refuse(const std::string& text, cublasStatus_t status) {
  state().fault(text);
  return status;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  const std::lock_guard lock(state().mutex);
  auto* made = reinterpret_cast<cublasHandle_t>(new char(0));
  state().blas[made] = nullptr;
  *handle = made;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  const std::lock_guard lock(state().mutex);
  if (state().blas.erase(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete reinterpret_cast<char*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  Stream* found = stream_of(stream);
  const std::lock_guard lock(state().mutex);
  if (found == nullptr || !state().blas.contains(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  state().blas[handle] = found;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "the library was not initialized";
    case CUBLAS_STATUS_INVALID_VALUE: return "an invalid value was passed";
    default: return "the requested functionality is not supported";
  }
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k, const void* alpha,
                                          const void* A, cudaDataType Atype, int lda, long long int strideA, const void* B, cudaDataType Btype, int ldb,
                                          long long int strideB, const void* beta, void* C, cudaDataType Ctype, int ldc, long long int strideC, int batchCount,
                                          cublasComputeType_t computeType, cublasGemmAlgo_t) {
  Stream* stream = nullptr;
  {
    const std::lock_guard lock(state().mutex);
    const auto found = state().blas.find(handle);
    if (found != state().blas.end()) stream = found->second;
  }
  if (stream == nullptr) return refuse("a handle of cuBLAS without a stream, or that is no more", CUBLAS_STATUS_NOT_INITIALIZED);
  const bool ta = transa == CUBLAS_OP_T, tb = transb == CUBLAS_OP_T, wide = computeType == CUBLAS_COMPUTE_64F;
  const auto number = [wide](const void* value) { return wide ? *static_cast<const double*>(value) : static_cast<double>(*static_cast<const float*>(value)); };
  const Product p{{A, Atype, ta ? k : m, ta ? m : k, lda, strideA},
                  {B, Btype, tb ? n : k, tb ? k : n, ldb, strideB},
                  {C, Ctype, m, n, ldc, strideC},
                  ta,
                  tb,
                  number(alpha),
                  number(beta),
                  batchCount};
  for (const Operand* o : {&p.a, &p.b, &p.c}) {
    if (o->stride < o->rows || o->rows <= 0 || o->columns <= 0) return refuse("cuBLAS refuses a leading dimension or a size", CUBLAS_STATUS_INVALID_VALUE);
  }
  if (!supported(p, computeType)) return refuse("cuBLAS does not multiply these types", CUBLAS_STATUS_NOT_SUPPORTED);
  stream->push(Stream::Kind::exclusive, [p, wide](const Stream::Running& now) { wide ? p.run<double>(now) : p.run<float>(now); });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
