// Which kernels are measured, each as a shape and a call that does that work: a sweep over sizes, or exactly the distinct kernels of a program.
// Test: tests/unit/host_bench_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "program/program.hpp"
#include "real_backend/bench/repeat.hpp"
#include "real_backend/bench/target.hpp"

namespace stepcast::real::bench {

struct KernelCase {
  hw::KernelShape shape;
  std::string name;  // as launched: kernels of one shape may compute different things; empty in the sweep
  program::Call call;
};

/// Products, attention, and memory-bound kernels of each class and of growing size, in this type. `large`: as large as GPUs are used for.
std::vector<KernelCase> sweep(hw::Dtype dtype, bool large = false);
/// A product that outlasts what begins and ends it.
KernelCase product(hw::Dtype dtype, bool large = false);
/// One for each distinct shape and name that a program of native kernels launches; copies of the input are left out.
std::vector<KernelCase> kernels_of(const program::Program& program);

/// Of a kernel in a stream full of them, while as many ranks do the same: from one kernel's begin to the next one's, or, by a clock of the device's own, what it takes there.
/// Operands are not in the processors' own caches: copies of them take turns.
Quartiles measure(const Target& target, const KernelCase& kernel, std::int32_t ranks, const Effort& effort);
/// The same while a collective runs beside it, again and again.
Quartiles measure_beside(const Target& target, const KernelCase& kernel, const hw::CollectiveShape& shape, const Effort& effort);

/// The host's time for a launch while the stream is busy, and from a launch to the kernel's begin on an idle stream.
Quartiles measure_launch_call(const Target& target, const Effort& effort);
Quartiles measure_launch_latency(const Target& target, const Effort& effort);

/// Of a request, or a free, of this many bytes that the caching allocator's cache serves.
Quartiles measure_allocation(std::int64_t bytes, const Effort& effort);
/// Of taking this many bytes from the device itself, and of giving them back.
Quartiles measure_device_malloc(const Target& target, std::int64_t bytes, const Effort& effort);
Quartiles measure_device_free(const Target& target, std::int64_t bytes, const Effort& effort);

/// Of a copy between device and host, whose memory is page-locked or not.
Quartiles measure_copy(const Target& target, bool to_device, bool pinned, std::int64_t bytes, const Effort& effort);

/// Of a collective of this many ranks as programs use it: behind an event of another stream, which then waits for an event behind the collective; or, by a clock of the device's own, what
/// it takes from the arrival of the last rank.
Quartiles measure_collective(const Target& target, const hw::CollectiveShape& shape, const Effort& effort);

}  // namespace stepcast::real::bench
