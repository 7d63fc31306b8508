// See occupancy.hpp.
#include "hw_models/occupancy.hpp"

#include <algorithm>
#include <cmath>

namespace stepcast::hw {

namespace {

constexpr double kBlock = 128;                    // rows or columns of an output tile; query rows of a block of fused attention
constexpr double kBytesPerProcessor = 2048 * 16;  // all threads of a multiprocessor with one vector load each

double blocks(std::int64_t extent) { return std::ceil(static_cast<double>(extent) / kBlock); }

double units_of_work(const KernelShape& shape) {
  switch (shape.kind) {
    case KernelKind::gemm: return static_cast<double>(shape.batch) * blocks(shape.m) * blocks(shape.n);
    case KernelKind::attention_forward:
    case KernelKind::attention_backward: return static_cast<double>(shape.batch) * static_cast<double>(shape.n) * blocks(shape.m);
    case KernelKind::memory_bound: return dram_bytes(shape).si() / kBytesPerProcessor;
    case KernelKind::copy_to_host:
    case KernelKind::copy_to_device:  // no multiprocessor works on it
    case KernelKind::fixed: return 0;
  }
  return 0;
}

}  // namespace

double processor_share(const KernelShape& shape, double processors) { return std::min(1.0, units_of_work(shape) / processors); }

}  // namespace stepcast::hw
