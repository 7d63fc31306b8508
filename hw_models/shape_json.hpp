// How files spell operations: the "what", "dtype" and "shape" of a row of measurements, or of a profile's table. docs/measurement_file.md.
// Test: tests/unit/measurement_file_test.cpp, tests/model/measured_times_test.cpp.
#pragma once

#include <array>
#include <nlohmann/json.hpp>

#include "hw_models/kernel.hpp"
#include "hw_models/strict_json.hpp"

namespace stepcast::hw {

inline constexpr std::array kDtypeNames{EnumName<Dtype>{Dtype::fp64, "fp64"}, EnumName<Dtype>{Dtype::fp32, "fp32"}, EnumName<Dtype>{Dtype::tf32, "tf32"},
                                        EnumName<Dtype>{Dtype::bf16, "bf16"}, EnumName<Dtype>{Dtype::fp16, "fp16"}, EnumName<Dtype>{Dtype::fp8, "fp8"}};

/// Operations that have a shape. Copies have no dtype.
enum class Operation : std::uint8_t { gemm, attention, memory_bound, copy, collective };
inline constexpr std::array kOperations{EnumName<Operation>{Operation::gemm, "gemm"}, EnumName<Operation>{Operation::attention, "attention"},
                                        EnumName<Operation>{Operation::memory_bound, "memory_bound"}, EnumName<Operation>{Operation::copy, "copy"},
                                        EnumName<Operation>{Operation::collective, "collective"}};

/// The kernel of a "shape" (not a collective's). Throws InputError on values out of range; leaves `finish` to the caller. `both_passes`: attention's forward and
/// backward in one time; null where that is not allowed.
KernelShape read_kernel(Operation operation, Dtype dtype, Reader& shape, bool* both_passes = nullptr);
CollectiveShape read_collective(Dtype dtype, Reader& shape);

/// {"what", "dtype", "shape"}, which the readers above give back.
nlohmann::ordered_json shape_row(const KernelShape& shape);
nlohmann::ordered_json shape_row(const CollectiveShape& shape);

}  // namespace stepcast::hw
