// See describe.hpp.
#include "calibration/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "hw_models/memory_class_names.hpp"

namespace stepcast::calibration {
namespace {

const char* name(hw::AttentionKernel kernel) {
  constexpr std::array kNames{"none", "flash1", "flash2", "flash3", "triton", "efficient"};
  return kNames.at(static_cast<std::size_t>(kernel));
}

bool is_attention(const hw::KernelShape& shape) { return shape.kind == hw::KernelKind::attention_forward || shape.kind == hw::KernelKind::attention_backward; }

const char* pass_of(const Measurement& row) {
  if (row.both_passes) return "forward and backward";
  return row.kernel.kind == hw::KernelKind::attention_forward ? "forward" : "backward";
}

/// "10-100 MB"
std::string decade(double size, const char* unit) {
  constexpr std::array kPrefixes{"", "k", "M", "G", "T", "P"};
  const int power = static_cast<int>(std::floor(std::log10(size) + 1e-9));
  const int prefix = std::clamp(power / 3, 0, 5);
  const double low = std::pow(10.0, power - 3 * prefix);
  return fmt::format("{:g}-{:g} {}{}", low, 10 * low, kPrefixes.at(static_cast<std::size_t>(prefix)), unit);
}

int quarter(std::int64_t size) { return static_cast<int>(std::log2(static_cast<double>(std::max<std::int64_t>(size, 1))) / 2); }

std::string kernel_text(const Measurement& row) {
  const hw::KernelShape& s = row.kernel;
  if (s.kind == hw::KernelKind::gemm) return fmt::format("{} x {} x {}{}", s.m, s.n, s.k, s.batch > 1 ? fmt::format(", {} of them", s.batch) : "");
  if (is_attention(s)) {
    return fmt::format("{}, {} x {} tokens, {} heads of {}{}{}", pass_of(row), s.batch, s.m, s.n, s.k,
                       s.kv_heads > 0 && s.kv_heads != s.n ? fmt::format(" ({} of keys)", s.kv_heads) : "", s.causal ? ", causal" : "");
  }
  return fmt::format("{:.6g} MB", dram_bytes(s).si() / 1e6);
}

std::string kernel_cell(const hw::KernelShape& s) {
  if (s.kind == hw::KernelKind::memory_bound) return std::to_string(quarter(s.read_bytes + s.write_bytes));
  return fmt::format("{} {} {} {}", quarter(s.batch), quarter(s.m), quarter(s.n), quarter(s.k));
}

}  // namespace

std::string group_of(const Measurement& row) {
  const hw::KernelShape& shape = row.kernel;
  switch (row.timed) {
    case Timed::kernel: break;
    case Timed::collective: return std::string(hw::name(row.collective.kind)) + (row.collective.group.nodes > 1 ? " between nodes" : " inside a node");
    case Timed::launch_call: return "launch call";
    case Timed::launch_latency: return "launch latency";
    case Timed::device_malloc: return "device malloc";
    case Timed::device_free: return "device free";
    case Timed::cached_allocation: return "allocation from the cache";
  }
  if (shape.kind == hw::KernelKind::gemm) return shape.batch > 1 ? "batched GEMM" : "GEMM";
  if (is_attention(shape)) return std::string("attention ") + name(shape.attention);
  return std::string("memory-bound ") + name(shape.memory);
}

double size_of(const Measurement& row) {
  switch (row.timed) {
    case Timed::kernel: return row.kernel.kind == hw::KernelKind::memory_bound ? dram_bytes(row.kernel).si() : executed_flops(row.kernel).si();
    case Timed::collective: return static_cast<double>(row.collective.bytes);
    case Timed::device_malloc:
    case Timed::device_free:
    case Timed::cached_allocation: return static_cast<double>(row.bytes);
    case Timed::launch_call:
    case Timed::launch_latency: break;
  }
  return 0;
}

std::string decade_of(const Measurement& row) {
  const double size = size_of(row);
  const bool flops = row.timed == Timed::kernel && row.kernel.kind != hw::KernelKind::memory_bound;
  return size > 0 ? decade(size, flops ? "FLOP" : "B") : "";
}

std::string describe(const Measurement& row) {
  const std::string group = group_of(row);
  if (row.timed == Timed::kernel) return fmt::format("{} {} {}", group, hw::name(row.kernel.dtype), kernel_text(row));
  if (row.timed == Timed::collective) {
    const hw::CollectiveShape& c = row.collective;
    return fmt::format("{} of {} B, {} x {} ranks", hw::name(c.kind), c.bytes, c.group.nodes, c.group.ranks_per_node);
  }
  return row.bytes > 0 ? fmt::format("{} of {} B", group, row.bytes) : group;
}

std::string cell_of(const Measurement& row) {
  const std::string group = group_of(row);
  if (row.timed == Timed::kernel) return group + " " + kernel_cell(row.kernel);
  if (row.timed == Timed::collective) return fmt::format("{} {} {}", group, row.collective.group.nodes, quarter(row.collective.bytes));
  return group + std::to_string(quarter(row.bytes));
}

}  // namespace stepcast::calibration
