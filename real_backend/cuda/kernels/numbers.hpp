// Number types of the CUDA driver's kernels, and the type in which sums over each are formed: those of the host driver. Test: tests/unit/cuda_kernels_test.cpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "hw_models/kernel.hpp"

#ifdef __CUDACC__
#define STEPCAST_ANYWHERE __host__ __device__
#else
#define STEPCAST_ANYWHERE
#endif

namespace stepcast::real::cuda {

/// The upper half of a float, rounded to the nearest, ties to even.
struct Bf16 {
  std::uint16_t bits = 0;

  Bf16() = default;
  STEPCAST_ANYWHERE explicit Bf16(float value) {
    std::uint32_t wide = 0;
    std::memcpy(&wide, &value, sizeof wide);
    const bool nan = (wide & 0x7fffffffU) > 0x7f800000U;
    bits = static_cast<std::uint16_t>(nan ? 0x7fc0U : (wide + 0x7fffU + ((wide >> 16U) & 1U)) >> 16U);
  }
  STEPCAST_ANYWHERE explicit Bf16(double value) : Bf16(static_cast<float>(value)) {}
  STEPCAST_ANYWHERE explicit operator float() const {
    const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16U;
    float value = 0;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
  STEPCAST_ANYWHERE explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
};

template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
struct Type {
  using type = T;
};

/// Calls f(Type<T>) with the C++ type of `dtype`. Throws std::runtime_error for those that the kernels do not compute in.
template <class F>
decltype(auto) with_type(hw::Dtype dtype, F f) {
  switch (dtype) {
    case hw::Dtype::fp64: return f(Type<double>{});
    case hw::Dtype::fp32: return f(Type<float>{});
    case hw::Dtype::bf16: return f(Type<Bf16>{});
    default: throw std::runtime_error(std::string("the CUDA driver computes in fp64, fp32 and bf16, not in ") + hw::name(dtype));
  }
}

}  // namespace stepcast::real::cuda
