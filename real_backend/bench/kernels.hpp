// Which kernels are measured, each as a shape and a call that does that work: a sweep over sizes, or exactly the distinct kernels of a program.
// Test: tests/unit/host_bench_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "program/program.hpp"
#include "real_backend/bench/repeat.hpp"

namespace stepcast::real::bench {

struct KernelCase {
  hw::KernelShape shape;
  std::string name;  // as launched: kernels of one shape may compute different things; empty in the sweep
  program::Call call;
};

/// Products, attention, and memory-bound kernels of each class and of growing size, in this type.
std::vector<KernelCase> sweep(hw::Dtype dtype);
/// One for each distinct shape and name that a program of native kernels launches; copies of the input are left out.
std::vector<KernelCase> kernels_of(const program::Program& program);

/// Of a kernel in a stream full of them, while as many ranks do the same: from one kernel's begin to the next one's. Operands are not in the processors' own caches: copies
/// of them take turns.
Quartiles measure(const KernelCase& kernel, std::int32_t ranks, const Effort& effort);

/// The host's time for a launch while the stream is busy, and from a launch to the kernel's begin on an idle stream.
Quartiles measure_launch_call(const Effort& effort);
Quartiles measure_launch_latency(const Effort& effort);

/// Of a request, or a free, of this many bytes that the caching allocator's cache serves.
Quartiles measure_allocation(std::int64_t bytes, const Effort& effort);

/// Of a collective of this many ranks, each a thread, as programs use it: behind an event of another stream, which then waits for an event behind the collective.
Quartiles measure_collective(const hw::CollectiveShape& shape, const Effort& effort);

}  // namespace stepcast::real::bench
