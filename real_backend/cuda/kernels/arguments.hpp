// A call's parts as typed pointers, and the functions that enqueue kernels for it.
#pragma once

#include "real_backend/cuda/kernels/numbers.hpp"
#include "real_backend/cuda/kernels/run.hpp"

namespace stepcast::real::cuda::kernels {

struct Arguments : CallParts {
  Lane& lane;

  [[nodiscard]] std::int64_t bytes(std::size_t i) const { return count(i) * hw::bytes_per_element(dtype(i)); }
  [[nodiscard]] cudaStream_t stream() const { return lane.stream(); }
};

void zero(const Arguments& a);
void copy(const Arguments& a, std::size_t first);
void pack(const Arguments& a);
void add(const Arguments& a);
void sum(const Arguments& a);
void scale(const Arguments& a);
void load_input(const Arguments& a);
void embedding(const Arguments& a);
void embedding_backward(const Arguments& a);
void add_positions(const Arguments& a);
void positions_backward(const Arguments& a);
void norm(const Arguments& a);
void norm_backward(const Arguments& a);
void gemm(const Arguments& a);
void add_bias(const Arguments& a);
void column_sum(const Arguments& a);
void rope(const Arguments& a);
void attention(const Arguments& a);
void attention_backward(const Arguments& a);
void gated(const Arguments& a);
void gated_backward(const Arguments& a);
void gelu(const Arguments& a);
void gelu_backward(const Arguments& a);
void cross_entropy(const Arguments& a);
void cross_entropy_backward(const Arguments& a);
void sum_of_squares(const Arguments& a);
void clip_coefficient(const Arguments& a);
void scale_by(const Arguments& a);
void adamw(const Arguments& a);

}  // namespace stepcast::real::cuda::kernels
