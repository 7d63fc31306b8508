// A call's parts as typed pointers, and what it may need beside them: the same for both drivers. Test: tests/unit/host_kernels_test.cpp, tests/unit/cuda_kernels_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "program/compute.hpp"
#include "real_backend/device.hpp"
#include "real_backend/training.hpp"

namespace stepcast::real {

/// What a call may need beside its parts.
struct Environment {
  const Training& training;
  Moment moment;
  std::int32_t rank = 0;
};

struct CallParts {
  const program::Call& call;
  std::span<std::byte* const> parts;  // null for absent ones
  const Environment& environment;

  [[nodiscard]] const program::Attributes& at() const { return call.attributes; }
  [[nodiscard]] std::size_t size() const { return call.parts.size(); }
  [[nodiscard]] std::int64_t count(std::size_t i) const { return call.parts[i].count; }
  [[nodiscard]] hw::Dtype dtype(std::size_t i) const { return call.parts[i].dtype; }
  [[nodiscard]] bool has(std::size_t i) const { return i < parts.size() && parts[i] != nullptr; }
  template <class T>
  [[nodiscard]] T* pointer(std::size_t i) const {
    return has(i) ? reinterpret_cast<T*>(parts[i]) : nullptr;
  }
};

}  // namespace stepcast::real
