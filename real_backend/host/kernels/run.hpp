// Runs one call with real numbers. Test: tests/unit/host_kernels_test.cpp (each function against finite differences or a written-out sum).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "program/compute.hpp"
#include "real_backend/call_parts.hpp"

namespace stepcast::real::host::kernels {

/// Cosines, then sines, of rotary positions, by position and half of the head.
struct Angles {
  std::int64_t seq_len = 0, head_dim = 0;
  std::vector<double> cosines, sines;
};

/// Memory that a stream's kernels use one after the other; grows to what the largest needs.
class Scratch {
 public:
  /// The `place`-th of a few, of `count` elements; what was there is lost.
  template <class T>
  T* get(std::size_t place, std::int64_t count) {
    std::vector<std::byte>& memory = places_[place];
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (memory.size() < bytes + kAlignment) memory.resize(bytes + kAlignment);
    void* begin = memory.data();
    std::size_t space = memory.size();
    return static_cast<T*>(std::align(kAlignment, bytes, begin, space));
  }

  Angles angles;  // of the last length and head that were asked for

 private:
  static constexpr std::size_t kAlignment = 64;
  std::vector<std::byte> places_[10];
};

/// `parts`: where the call's parts begin, null for absent ones. Throws std::runtime_error.
void run(const program::Call& call, std::span<std::byte* const> parts, const Environment& environment, Scratch& scratch);

}  // namespace stepcast::real::host::kernels
