// See rows.hpp.
#include "cli/bench/rows.hpp"

#include <fmt/format.h>

#include <utility>

#include "calibration/measurement_file.hpp"
#include "cli/train/host_machine.hpp"
#include "hw_models/ordered_json.hpp"
#include "hw_models/shape_json.hpp"

namespace stepcast::cli {
namespace {

using real::bench::Effort;

constexpr std::int64_t kAllocations[] = {1 << 12, 1 << 20, 1 << 26};  // bytes: of the small pool, the large one, and a segment of its own

std::string microseconds(double seconds) { return fmt::format("{:.6g} us", seconds * 1e6); }

BenchPoint point_of(real::bench::KernelCase kernel, std::int32_t ranks) {
  OrderedJson row = hw::shape_row(kernel.shape);
  if (!kernel.name.empty()) row["name"] = kernel.name;
  row["ranks"] = ranks;
  return {std::move(row), [kernel = std::move(kernel), ranks](const Effort& effort) { return real::bench::measure(kernel, ranks, effort); }};
}

BenchPoint point_of(const hw::CollectiveShape& shape) {
  return {hw::shape_row(shape), [shape](const Effort& effort) { return real::bench::measure_collective(shape, effort); }};
}

}  // namespace

void BenchPlan::add(BenchPoint point) {
  if (known_.insert(point.row.dump()).second) points_.push_back(std::move(point));
}

void add_host_calls(BenchPlan& plan) {
  plan.add({{{"what", "launch"}, {"shape", {{"call", "call"}}}}, real::bench::measure_launch_call});
  plan.add({{{"what", "launch"}, {"shape", {{"call", "latency"}}}}, real::bench::measure_launch_latency});
  for (const std::int64_t bytes : kAllocations) {
    plan.add({{{"what", "allocation"}, {"shape", {{"call", "cached"}, {"size", fmt::format("{} B", bytes)}}}},
              [bytes](const Effort& effort) { return real::bench::measure_allocation(bytes, effort); }});
  }
}

void add_sweep(hw::Dtype dtype, const std::vector<std::int32_t>& ranks, BenchPlan& plan) {
  for (real::bench::KernelCase& kernel : real::bench::sweep(dtype)) plan.add(point_of(std::move(kernel), 1));
  for (const std::int32_t count : ranks) {
    const std::int64_t unit = hw::bytes_per_element(dtype) * count;
    for (const auto kind : {hw::CollectiveKind::all_gather, hw::CollectiveKind::reduce_scatter, hw::CollectiveKind::all_reduce}) {
      for (std::int64_t bytes = 1 << 12; bytes <= 1 << 24; bytes *= 8) plan.add(point_of({kind, dtype, (bytes + unit - 1) / unit * unit, {count, 1}}));
    }
  }
}

void add_program(const program::Program& program, std::int32_t ranks, BenchPlan& plan) {
  for (real::bench::KernelCase& kernel : real::bench::kernels_of(program)) plan.add(point_of(std::move(kernel), ranks));
  for (const program::CollectiveEntry& entry : program.collectives) {
    if (entry.shape.group.ranks() > 1) plan.add(point_of(entry.shape));
  }
}

OrderedJson timed(OrderedJson row, const real::bench::Quartiles& q) {
  row["clock"] = "device";  // no synchronisation is inside
  row["times"] = {
      {"median", microseconds(q.median)}, {"first_quartile", microseconds(q.first)}, {"third_quartile", microseconds(q.third)}, {"repeats", q.repeats}};
  return row;
}

OrderedJson measurement_file(OrderedJson rows) {
  const HostMachine machine = host_machine();
  return {{"schema", calibration::kBenchSchema},
          {"machine", {{"gpu", machine.processor}, {"gpus", 1}, {"threads", machine.threads}, {"memory_bytes", machine.memory_bytes}}},
          {"rows", std::move(rows)}};
}

}  // namespace stepcast::cli
