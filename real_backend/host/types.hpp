// Number types of the host driver, and the type in which sums over each are formed.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "hw_models/kernel.hpp"

namespace stepcast::real::host {

template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
struct Type {
  using type = T;
};

/// Calls f(Type<T>) with the C++ type of `dtype`. Throws std::runtime_error for those that the host does not compute in.
template <class F>
decltype(auto) with_type(hw::Dtype dtype, F f) {
  switch (dtype) {
    case hw::Dtype::fp64: return f(Type<double>{});
    case hw::Dtype::fp32: return f(Type<float>{});
    case hw::Dtype::bf16: return f(Type<Eigen::bfloat16>{});
    default: throw std::runtime_error(std::string("the host computes in fp64, fp32 and bf16, not in ") + hw::name(dtype));
  }
}

}  // namespace stepcast::real::host
