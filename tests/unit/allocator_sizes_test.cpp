// Rounding, segment sizes and pools against hand sums. Rules: docs/caching_allocator.md, "Sizes".
#include "memory/sizes.hpp"

#include <doctest/doctest.h>

using namespace stepcast::memory;

TEST_CASE("requests go up to the next multiple of 512 bytes") {
  CHECK(round_request(1, 0) == 512);
  CHECK(round_request(512, 0) == 512);
  CHECK(round_request(513, 0) == 1024);
  CHECK(round_request(1'000'000, 1) == 1'000'448);  // 1954 * 512
}

TEST_CASE("power-of-two divisions apply above 512 bytes times the divisions") {
  CHECK(round_request(1200, 4) == 1536);  // 1200 <= 2048: plain rounding, 3 * 512
  CHECK(round_request(2048, 4) == 2048);
  CHECK(round_request(2049, 4) == 2560);              // interval 2048..4096 in steps of 512
  CHECK(round_request(5'000'000, 4) == 5'242'880);    // 4 MiB..8 MiB in steps of 1 MiB: 5 MiB
  CHECK(round_request(31'552'404, 8) == 33'554'432);  // 16 MiB..32 MiB in steps of 2 MiB: 30.09 MiB -> 32 MiB
  CHECK(round_request(33'554'432, 8) == 33'554'432);  // a power of two stays
}

TEST_CASE("segments: 2 MiB for small requests, 20 MiB below 10 MiB, then the request to the next 2 MiB") {
  CHECK(segment_bytes(512) == 2 * kMiB);
  CHECK(segment_bytes(kMiB) == 2 * kMiB);
  CHECK(segment_bytes(kMiB + 512) == 20 * kMiB);
  CHECK(segment_bytes(10 * kMiB - 512) == 20 * kMiB);
  CHECK(segment_bytes(10 * kMiB) == 10 * kMiB);
  CHECK(segment_bytes(round_request(12'648'448, 0)) == 14 * kMiB);    // 12.06 MiB: a shard of a 7B block on 32 GPUs
  CHECK(segment_bytes(round_request(404'766'720, 0)) == 388 * kMiB);  // 386.02 MiB: a gathered 7B block in bf16
}

TEST_CASE("absurd requests stay beyond every device and do not overflow") {
  CHECK(round_request(INT64_MAX, 0) > kMaxBytes);
  CHECK(round_request(INT64_MAX, kMaxDivisions) > kMaxBytes);
  CHECK(segment_bytes(round_request(INT64_MAX, 0)) > kMaxBytes);
}
