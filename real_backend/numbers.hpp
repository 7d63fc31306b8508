// Number types that both drivers compute in, and the type in which sums over each are formed. Test: tests/unit/host_kernels_test.cpp, tests/unit/cuda_kernels_test.cpp.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>

#include "hw_models/kernel.hpp"

namespace stepcast::real {

template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
struct Type {
  using type = T;
};

/// Calls f(Type<T>) with the C++ type of `dtype`, `Bf16` being the driver's own. Throws std::runtime_error for those that `driver` does not compute in.
template <class Bf16, class F>
decltype(auto) with_number(hw::Dtype dtype, const char* driver, F f) {
  switch (dtype) {
    case hw::Dtype::fp64: return f(Type<double>{});
    case hw::Dtype::fp32: return f(Type<float>{});
    case hw::Dtype::bf16: return f(Type<Bf16>{});
    default: throw std::runtime_error(std::string(driver) + " computes in fp64, fp32 and bf16, not in " + hw::name(dtype));
  }
}

}  // namespace stepcast::real
