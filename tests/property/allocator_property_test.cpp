// After any sequence of operations the counters equal a full recount, blocks tile their segments, neighbours are merged and the best fit is taken.
// Rules: docs/caching_allocator.md.
#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "support/allocator_ops.hpp"

using namespace stepcast;

namespace {

std::vector<std::uint8_t> random_bytes(std::uint32_t seed, std::uint8_t flags, std::size_t count) {
  std::mt19937 generator(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(generator() >> 24);
  bytes[0] = flags;  // which settings are on
  return bytes;
}

}  // namespace

TEST_CASE("random operations keep every invariant under all combinations of settings") {
  memory::Statistics seen;
  std::size_t hits = 0, fits = 0;
  for (std::uint8_t flags = 0; flags < 32; ++flags) {
    for (std::uint32_t seed = 0; seed < 12; ++seed) {
      const test::DrivenRun run = test::drive_allocator(random_bytes(seed * 100 + flags, flags, 4000), 1);
      CHECK_MESSAGE(run.violation.empty(), "flags " << int{flags} << ", seed " << seed << ", operation " << run.operations << ": " << run.violation);
      seen.retries += run.last.retries;
      seen.ooms += run.last.ooms;
      seen.device_frees += run.last.device_frees;
      hits += run.cache_hits;
      fits += run.best_fits_checked;
    }
  }
  // The sequences must reach what they are meant to test.
  CHECK(seen.retries > 1000);
  CHECK(seen.ooms > 500);
  CHECK(seen.ooms < seen.retries);
  CHECK(seen.device_frees > 1000);
  CHECK(hits > 10'000);
  CHECK(fits > 1000);
}
