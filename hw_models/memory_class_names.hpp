// Classes of memory-bound kernels by name, as traces and reports write them. Test: tests/unit/chrome_writer_test.cpp, tests/model/calibrate_trace_test.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "hw_models/kernel.hpp"

namespace stepcast::hw {

inline constexpr std::array kMemoryClassNames{"elementwise", "normalization", "softmax", "indexing", "copy", "optimizer", "tiny"};

inline const char* name(MemoryClass memory) { return kMemoryClassNames.at(static_cast<std::size_t>(memory)); }

inline std::optional<MemoryClass> memory_class(std::string_view name) {
  const auto* at = std::find(kMemoryClassNames.begin(), kMemoryClassNames.end(), name);
  return at == kMemoryClassNames.end() ? std::nullopt : std::optional(static_cast<MemoryClass>(at - kMemoryClassNames.begin()));
}

}  // namespace stepcast::hw
