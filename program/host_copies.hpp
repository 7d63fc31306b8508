// Copies between device and host, and work of the host's processors on what was offloaded. docs/offload.md; test: tests/unit/offload_test.cpp.
#pragma once

#include "program/builder.hpp"
#include "program/spec.hpp"

namespace stepcast::program {

inline KernelId copy_to_device(Builder& builder, std::int64_t bytes) {
  return builder.kernel({.kind = hw::KernelKind::copy_to_device, .write_bytes = bytes, .together = true}, "aten::copy_ to device",
                        "Memcpy HtoD (Pinned -> Device)");
}

inline KernelId copy_to_host(Builder& builder, std::int64_t bytes) {
  return builder.kernel({.kind = hw::KernelKind::copy_to_host, .read_bytes = bytes, .together = true}, "aten::copy_ to host", "Memcpy DtoH (Device -> Pinned)");
}

/// Units of host work on this many elements: begun 2^20.
inline std::uint32_t mebi_elements(std::int64_t elements) { return static_cast<std::uint32_t>((elements + (1 << 20) - 1) >> 20); }

/// AdamW on the host: PyTorch's multi-tensor form runs op by op there.
inline void cpu_adam(Builder& builder, OptimizerImpl implementation, std::int64_t elements) {
  const bool fused = implementation == OptimizerImpl::fused;
  builder.host_work(fused ? hw::HostWork::cpu_adam : hw::HostWork::cpu_adam_by_tensor, mebi_elements(elements));
}

}  // namespace stepcast::program
