// Matrix products of linear layers.
#include "real_backend/cuda/kernels/arguments.hpp"
#include "real_backend/cuda/kernels/blas.hpp"

namespace stepcast::real::cuda::kernels {

void gemm(const Arguments& args) {
  const program::Attributes& at = args.at();
  const Factor a{args.parts[0], args.dtype(0), at.transpose_a ? at.rows : at.inner, 0, at.transpose_a};
  const Factor b{args.parts[1], args.dtype(1), at.transpose_b ? at.inner : at.columns, 0, at.transpose_b};
  multiply(args.lane, {at.rows, at.columns, at.inner, 1, at.accumulate}, a, b, {args.parts[2], args.dtype(2), at.columns, 0});
  if (args.has(3)) add_bias(args);
}

}  // namespace stepcast::real::cuda::kernels
