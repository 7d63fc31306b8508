// docs/models.md, "Contention": how much of the multiprocessors a kernel fills, by hand.
#include "hw_models/occupancy.hpp"

#include <doctest/doctest.h>

using namespace stepcast::hw;

TEST_CASE("A GEMM by its 128 x 128 tiles") {
  CHECK(processor_share({.kind = KernelKind::gemm, .m = 4096, .n = 4096, .k = 64}, 108) == 1);
  CHECK(processor_share({.kind = KernelKind::gemm, .m = 384, .n = 1152, .k = 4096}, 108) == doctest::Approx(27.0 / 108));              // 3 x 9 tiles
  CHECK(processor_share({.kind = KernelKind::gemm, .batch = 2, .m = 385, .n = 1152, .k = 4096}, 108) == doctest::Approx(72.0 / 108));  // a ragged row of tiles
}

TEST_CASE("Attention by heads and blocks of 128 rows") {
  CHECK(processor_share({.kind = KernelKind::attention_forward, .batch = 1, .m = 1024, .n = 32, .k = 128}, 108) == 1);
  CHECK(processor_share({.kind = KernelKind::attention_backward, .batch = 1, .m = 1024, .n = 4, .k = 128}, 64) == 0.5);
}

TEST_CASE("A memory-bound kernel by its bytes: 32 KiB per multiprocessor; nothing for a scalar") {
  CHECK(processor_share({.kind = KernelKind::memory_bound, .read_bytes = 27 * 32768}, 108) == 0.25);
  CHECK(processor_share({.kind = KernelKind::memory_bound, .read_bytes = 400'000'000, .write_bytes = 400'000'000}, 108) == 1);
  CHECK(processor_share({.kind = KernelKind::memory_bound, .memory = MemoryClass::tiny, .read_bytes = 4}, 108) < 1e-5);
}
