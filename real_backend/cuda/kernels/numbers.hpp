// The CUDA driver's bf16, for the device and for the host. Test: tests/unit/cuda_kernels_test.cpp.
#pragma once

#include <cstdint>
#include <cstring>

#include "real_backend/numbers.hpp"

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

/// Calls f(Type<T>) with the C++ type of `dtype`. Throws std::runtime_error for those that the kernels do not compute in.
template <class F>
decltype(auto) with_type(hw::Dtype dtype, F f) {
  return with_number<Bf16>(dtype, "the CUDA driver", f);
}

}  // namespace stepcast::real::cuda
