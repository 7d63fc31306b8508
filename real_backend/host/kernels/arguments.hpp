// A call's parts as typed pointers and arrays, and the functions that compute on them.
#pragma once

#include <Eigen/Core>
#include <span>

#include "real_backend/host/kernels/run.hpp"
#include "real_backend/host/types.hpp"

namespace stepcast::real::host::kernels {

template <class T>
using Array = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using ConstArray = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using Matrix = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0, Eigen::OuterStride<>>;
template <class T>
using ConstMatrix = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0, Eigen::OuterStride<>>;

struct Arguments : CallParts {
  Scratch& scratch;

  template <class T>
  [[nodiscard]] Array<T> array(std::size_t i) const {
    return Array<T>(pointer<T>(i), count(i));
  }
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

}  // namespace stepcast::real::host::kernels
