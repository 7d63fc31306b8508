// The part of a report that explains an out-of-memory: who asked, what held the memory, PyTorch's message, what would fit. docs/report.md, "Out of memory".
// Test: tests/unit/out_of_memory_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/report/report.hpp"

namespace stepcast::cli {

/// The fields of torch.OutOfMemoryError with this run's figures, in PyTorch's words. The request that it prints is the segment's size, not the tensor's.
std::string pytorch_message(const OutOfMemoryRow& row);
std::string out_of_memory_text(const OutOfMemoryRow& row);
nlohmann::ordered_json out_of_memory_json(const OutOfMemoryRow& row);

}  // namespace stepcast::cli
