// docs/models.md, "Memory-bound kernels".
#include "hw_models/memory_bound.hpp"

#include <doctest/doctest.h>

#include "hw_models/profiles.hpp"

using namespace stepcast;
using namespace stepcast::hw;

TEST_CASE("Fixed time and bytes over the achieved bandwidth") {
  const MemoryRates rates{.bandwidth = 2000 * GBps, .efficiency = 0.5, .fixed_time = 3 * microsecond};
  CHECK(memory_bound_time(Bytes(1e9), rates).in(microsecond) == doctest::Approx(1003));
  CHECK(memory_bound_time(Bytes(0), rates).in(microsecond) == doctest::Approx(3));
}

TEST_CASE("Residual add of 16,384 x 4096 bf16 on an A100-80GB: 402.7 MB at 0.88 x 2039 GB/s + 3 us = 227.4 us") {
  const MemoryRates rates = memory_rates(gpu_profile("a100-sxm4-80gb"), MemoryClass::elementwise);
  CHECK(memory_bound_time(Bytes(6.0 * 16384 * 4096), rates).in(microsecond) == doctest::Approx(227.4).epsilon(1e-3));
}

TEST_CASE("Normalization and softmax are slower than elementwise kernels, copies about as fast") {
  const Profile a100 = gpu_profile("a100-sxm4-80gb");
  const auto time = [&](MemoryClass memory) { return memory_bound_time(Bytes(1e9), memory_rates(a100, memory)); };
  CHECK(time(MemoryClass::normalization) > time(MemoryClass::softmax));
  CHECK(time(MemoryClass::softmax) > time(MemoryClass::elementwise));
  CHECK(time(MemoryClass::tiny) == time(MemoryClass::elementwise));
}
