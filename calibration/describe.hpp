// Rows in words, and how they are sorted: by kind of operation, by decade of size, by likeness of shape. Test: tests/unit/calibrate_test.cpp.
#pragma once

#include <string>

#include "calibration/measurement.hpp"

namespace stepcast::calibration {

/// "GEMM", "batched GEMM", "attention flash2", "memory-bound softmax", "all_gather inside a node", ...
std::string group_of(const Measurement& row);
/// FLOPs of products and attention, else bytes; 0 where there is neither.
double size_of(const Measurement& row);
/// "1-10 GFLOP": the power of ten that the size lies in; "" without a size.
std::string decade_of(const Measurement& row);
/// The whole shape, e.g. "GEMM bf16 8192 x 4096 x 4096": equal for equal operations.
std::string describe(const Measurement& row);
/// Rows of one cell are alike within a factor of four in each size: a formula errs on them together.
std::string cell_of(const Measurement& row);

}  // namespace stepcast::calibration
