// Which kernels are measured, each as a shape and a call that does that work: a sweep over sizes, or exactly the distinct kernels of a program.
// Test: tests/unit/host_bench_test.cpp.
#pragma once

#include <vector>

#include "program/program.hpp"
#include "real_backend/bench/repeat.hpp"

namespace stepcast::real::bench {

struct KernelCase {
  hw::KernelShape shape;
  program::Call call;
};

/// Products, attention, and memory-bound kernels of each class and of growing size, in this type.
std::vector<KernelCase> sweep(hw::Dtype dtype);
/// One for each distinct shape that a program of native kernels launches; copies of the input, kernels on single numbers and those that read nothing are left out.
std::vector<KernelCase> kernels_of(const program::Program& program);

struct KernelTime {
  hw::KernelShape shape;
  Quartiles time;
};
/// Each on a stream of the host driver, from the kernel's beginning to its end.
KernelTime measure(const KernelCase& kernel, const Effort& effort);

/// Of a launch on an idle stream: the host's time for the call, and from then to the kernel's beginning.
struct LaunchTime {
  Quartiles call, latency;
};
LaunchTime measure_launch(const Effort& effort);

/// Of a collective of this many ranks, each a thread: from the last rank's arrival to the end on the first.
Quartiles measure_collective(hw::CollectiveKind kind, hw::Dtype dtype, std::int64_t bytes, std::int32_t ranks, const Effort& effort);

}  // namespace stepcast::real::bench
