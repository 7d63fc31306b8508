// Which function computes a call. Each driver has one of each name beside its own type of arguments, where the call is found. Test: tests/unit/host_kernels_test.cpp.
#pragma once

#include "program/compute.hpp"

namespace stepcast::real {

template <class Arguments>
void dispatch(const Arguments& a) {
  using program::Function;
  switch (a.call.function) {
    case Function::zero: return zero(a);
    case Function::copy: return copy(a, 0);
    case Function::pack: return pack(a);
    case Function::add: return add(a);
    case Function::sum: return sum(a);
    case Function::scale: return scale(a);
    case Function::load_input: return load_input(a);
    case Function::embedding: return embedding(a);
    case Function::embedding_backward: return embedding_backward(a);
    case Function::add_positions: return add_positions(a);
    case Function::positions_backward: return positions_backward(a);
    case Function::norm: return norm(a);
    case Function::norm_backward: return norm_backward(a);
    case Function::gemm: return gemm(a);
    case Function::column_sum: return column_sum(a);
    case Function::rope: return rope(a);
    case Function::attention: return attention(a);
    case Function::attention_backward: return attention_backward(a);
    case Function::gated: return gated(a);
    case Function::gated_backward: return gated_backward(a);
    case Function::gelu: return gelu(a);
    case Function::gelu_backward: return gelu_backward(a);
    case Function::cross_entropy: return cross_entropy(a);
    case Function::cross_entropy_backward: return cross_entropy_backward(a);
    case Function::sum_of_squares: return sum_of_squares(a);
    case Function::clip_coefficient: return clip_coefficient(a);
    case Function::scale_by: return scale_by(a);
    case Function::adamw: return adamw(a);
  }
}

}  // namespace stepcast::real
