// Share of a GPU's multiprocessors that a kernel fills. docs/models.md, "Contention". Test: tests/model/occupancy_test.cpp.
#pragma once

#include "hw_models/kernel.hpp"

namespace stepcast::hw {

/// min(1, thread blocks / processors) for GEMM (128 x 128 tiles) and attention (128 query rows each); min(1, bytes / (processors x 32 KiB)) for memory-bound kernels:
/// 2,048 threads of 16 bytes fill a multiprocessor.
double processor_share(const KernelShape& shape, double processors);

}  // namespace stepcast::hw
