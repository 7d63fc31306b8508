// See rows.hpp.
#include "cli/bench/rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "calibration/measurement_file.hpp"

namespace stepcast::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string microseconds(double seconds) { return fmt::format("{:.6g} us", seconds * 1e6); }
std::string size(std::int64_t bytes) { return fmt::format("{} B", bytes); }

Json row(const char* what, Json shape, const real::bench::Quartiles& q, const char* clock) {
  return {{"what", what},
          {"shape", std::move(shape)},
          {"clock", clock},
          {"times",
           {{"median", microseconds(q.median)}, {"first_quartile", microseconds(q.first)}, {"third_quartile", microseconds(q.third)}, {"repeats", q.repeats}}}};
}

Json typed(Json row, hw::Dtype dtype) {
  row["dtype"] = hw::name(dtype);
  return row;
}

Json row_of(const real::bench::KernelTime& measured) {
  const hw::KernelShape& s = measured.shape;
  if (s.kind == hw::KernelKind::gemm) return typed(row("gemm", {{"m", s.m}, {"n", s.n}, {"k", s.k}, {"batch", s.batch}}, measured.time, "device"), s.dtype);
  if (s.kind == hw::KernelKind::memory_bound && s.memory == hw::MemoryClass::copy)
    return row("copy", {{"direction", "device_to_device"}, {"size", size(s.write_bytes)}}, measured.time, "device");
  if (s.kind == hw::KernelKind::memory_bound)
    return typed(row("memory_bound", {{"class", calibration::measured_name(s.memory)}, {"read", size(s.read_bytes)}, {"write", size(s.write_bytes)}},
                     measured.time, "device"),
                 s.dtype);
  return typed(row("attention",
                   {{"kernel", calibration::measured_name(s.attention)},
                    {"pass", s.kind == hw::KernelKind::attention_forward ? "forward" : "backward"},
                    {"causal", s.causal},
                    {"batch", s.batch},
                    {"seq_len", s.m},
                    {"heads", s.n},
                    {"kv_heads", s.kv_heads},
                    {"head_dim", s.k}},
                   measured.time, "device"),
               s.dtype);
}

Json row_of(const hw::CollectiveShape& c, const real::bench::Quartiles& time) {
  return typed(
      row("collective", {{"collective", hw::name(c.kind)}, {"size", size(c.bytes)}, {"nodes", c.group.nodes}, {"ranks_per_node", c.group.ranks_per_node}}, time,
          "device"),
      c.dtype);
}

}  // namespace

void add_collectives(hw::Dtype dtype, std::int32_t ranks, BenchPlan& plan) {
  const std::int64_t unit = hw::bytes_per_element(dtype) * ranks;
  for (const auto kind : {hw::CollectiveKind::all_gather, hw::CollectiveKind::reduce_scatter, hw::CollectiveKind::all_reduce}) {
    for (std::int64_t bytes = 1 << 12; bytes <= 1 << 24; bytes *= 8) plan.collectives.push_back({kind, dtype, (bytes + unit - 1) / unit * unit, {ranks, 1}});
  }
}

void add_collectives(const program::Program& program, BenchPlan& plan) {
  for (const program::CollectiveEntry& entry : program.collectives) {
    if (std::find(plan.collectives.begin(), plan.collectives.end(), entry.shape) == plan.collectives.end()) plan.collectives.push_back(entry.shape);
  }
}

std::size_t points(const BenchPlan& plan) { return plan.kernels.size() + plan.collectives.size() + 2; }  // with the two of launches

Json measure(const BenchPlan& plan, const std::function<void(std::size_t)>& progress) {
  Json rows = Json::array();
  const auto add = [&](Json next) {
    rows.push_back(std::move(next));
    if (progress) progress(rows.size());
  };
  const real::bench::LaunchTime launch = real::bench::measure_launch(plan.effort);
  rows.push_back(row("launch", {{"call", "call"}}, launch.call, "host"));
  rows.push_back(row("launch", {{"call", "latency"}}, launch.latency, "host"));
  for (const real::bench::KernelCase& kernel : plan.kernels) add(row_of(real::bench::measure(kernel, plan.effort)));
  for (const hw::CollectiveShape& c : plan.collectives) add(row_of(c, real::bench::measure_collective(c.kind, c.dtype, c.bytes, c.group.ranks(), plan.effort)));
  return rows;
}

}  // namespace stepcast::cli
