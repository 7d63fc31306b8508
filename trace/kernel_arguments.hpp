// What a profiler with record_shapes=True writes of the operator that launches a kernel, as far as the kernel's shape tells it. Private to trace/.
// Test: tests/unit/chrome_writer_test.cpp.
#pragma once

#include <string>
#include <string_view>

#include "hw_models/kernel.hpp"

namespace stepcast::trace {

/// "Input Dims" and "Input type" of `op` as arguments of an event, each behind a comma; empty for kernels whose shape holds bytes alone.
/// Products: (m x k)(k x n), behind the bias of an addmm. Attention: queries, keys and values as batch, heads, length, head dimension; of a backward behind the gradient of the result.
std::string operand_arguments(const hw::KernelShape& shape, std::string_view op);

/// "Memory class", "Read bytes" and "Written bytes" of a memory-bound kernel: no profiler knows them, but a simulated trace can be calibrated by. Empty for others.
std::string traffic_arguments(const hw::KernelShape& shape);

}  // namespace stepcast::trace
