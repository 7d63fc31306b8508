// The kernels between the products of attention. Test: tests/unit/cuda_kernels_test.cpp.
#pragma once

#include "real_backend/cuda/kernels/arguments.hpp"

namespace stepcast::real::cuda::kernels {

/// The heads of one sequence that share keys and values: the first of them, the first row of the sequence, and what lies in scratch: a matrix length x length for each head.
struct HeadGroup {
  std::int64_t head = 0, row = 0, heads = 1;
};

/// probabilities = softmax(scores / sqrt(head_dim)), masked; notes the log-sum-exp. Probabilities are of the tensors' type, scores of that of sums.
template <class T>
void softmax(const Arguments& a, const HeadGroup& group, const Sum<T>* scores, T* probabilities);

/// The probabilities once more, from the log-sum-exp, and the gradient of the unscaled scores from that of the probabilities.
template <class T>
void softmax_backward(const Arguments& a, const HeadGroup& group, const Sum<T>* scores, const Sum<T>* d_probabilities, T* probabilities, T* d_scores);

/// Rows of head_dim elements, one behind the other, into a tensor with rows of kv_stride.
template <class T>
void store_rows(const Arguments& a, const Sum<T>* rows, T* to);

}  // namespace stepcast::real::cuda::kernels
