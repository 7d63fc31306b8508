// Fuzzes the caching allocator with operations decoded from the input: any broken invariant is a crash. Rules: docs/caching_allocator.md.
#include <cstdio>
#include <cstdlib>
#include <span>

#include "support/allocator_ops.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const stepcast::test::DrivenRun run = stepcast::test::drive_allocator(std::span(data, size), 16);
  if (run.violation.empty()) return 0;
  std::fprintf(stderr, "operation %zu: %s\n", run.operations, run.violation.c_str());
  std::abort();
}
