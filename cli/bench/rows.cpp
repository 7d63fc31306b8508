// See rows.hpp.
#include "cli/bench/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

using Allocations = std::array<std::int64_t, 3>;
constexpr Allocations kDeviceAllocations = {1 << 21, 20 << 20, 1 << 30};  // bytes: segments of the small pool, the large one, and one of its own
constexpr Allocations kHostAllocations = {1 << 21, 20 << 20, 1 << 26};
constexpr std::int64_t kCopies[] = {1 << 16, 1 << 20, 1 << 24};
constexpr std::int64_t kBeside = 1 << 24;  // bytes of a collective beside a kernel

BenchPoint point_of(const real::bench::Target& target, real::bench::KernelCase kernel, std::int32_t ranks) {
  OrderedJson row = hw::shape_row(kernel.shape);
  if (!kernel.name.empty()) row["name"] = kernel.name;
  row["ranks"] = ranks;
  return {std::move(row), [target, kernel = std::move(kernel), ranks](const Effort& effort) { return real::bench::measure(target, kernel, ranks, effort); },
          ranks};
}

BenchPoint point_of(const real::bench::Target& target, const hw::CollectiveShape& shape) {
  return {hw::shape_row(shape), [target, shape](const Effort& effort) { return real::bench::measure_collective(target, shape, effort); }, shape.group.ranks()};
}

BenchPoint point_of(const real::bench::Target& target, const real::bench::KernelCase& kernel, const hw::CollectiveShape& beside) {
  OrderedJson row = hw::shape_row(kernel.shape);
  row["ranks"] = beside.group.ranks();
  row["beside"] = hw::shape_row(beside)["shape"];
  return {std::move(row), [=](const Effort& effort) { return real::bench::measure_beside(target, kernel, beside, effort); }, beside.group.ranks()};
}

/// The host's clock is around the copy and its end.
void add_copies(BenchPlan& plan) {
  const real::bench::Target& target = plan.target();
  for (const bool to_device : {true, false}) {
    for (const bool pinned : {false, true}) {
      if (pinned && !target.own_clock) continue;  // all of a processor's memory is alike
      for (const std::int64_t bytes : kCopies) {
        hw::KernelShape shape{.kind = to_device ? hw::KernelKind::copy_to_device : hw::KernelKind::copy_to_host, .pinned = pinned};
        (to_device ? shape.write_bytes : shape.read_bytes) = bytes;
        OrderedJson row = hw::shape_row(shape);
        row["clock"] = "host";
        plan.add({std::move(row), [=](const Effort& effort) { return real::bench::measure_copy(target, to_device, pinned, bytes, effort); }});
      }
    }
  }
}

void add_device_allocations(BenchPlan& plan) {
  const real::bench::Target& target = plan.target();
  for (const std::int64_t bytes : target.own_clock ? kDeviceAllocations : kHostAllocations) {
    const auto row = [&](const char* call) { return OrderedJson{{"what", "allocation"}, {"shape", {{"call", call}, {"size", fmt::format("{} B", bytes)}}}}; };
    plan.add({row("malloc"), [=](const Effort& effort) { return real::bench::measure_device_malloc(target, bytes, effort); }});
    plan.add({row("free"), [=](const Effort& effort) { return real::bench::measure_device_free(target, bytes, effort); }});
  }
}

}  // namespace

void BenchPlan::add(BenchPoint point) {
  if (!known_.insert(point.row.dump()).second) return;
  ranks_ = std::max(ranks_, point.ranks);
  points_.push_back(std::move(point));
}

void add_host_calls(BenchPlan& plan) {
  const real::bench::Target& target = plan.target();
  plan.add({{{"what", "launch"}, {"shape", {{"call", "call"}}}}, [target](const Effort& effort) { return real::bench::measure_launch_call(target, effort); }});
  plan.add(
      {{{"what", "launch"}, {"shape", {{"call", "latency"}}}}, [target](const Effort& effort) { return real::bench::measure_launch_latency(target, effort); }});
  add_device_allocations(plan);
  for (const std::int64_t bytes : kAllocations) {
    plan.add({{{"what", "allocation"}, {"shape", {{"call", "cached"}, {"size", fmt::format("{} B", bytes)}}}},
              [bytes](const Effort& effort) { return real::bench::measure_allocation(bytes, effort); }});
  }
}

void add_sweep(hw::Dtype dtype, const std::vector<std::int32_t>& ranks, BenchPlan& plan) {
  const real::bench::Target& target = plan.target();
  const std::int64_t most = target.own_clock ? 1 << 30 : 1 << 24;
  for (real::bench::KernelCase& kernel : real::bench::sweep(dtype, target.own_clock)) plan.add(point_of(target, std::move(kernel), 1));
  add_copies(plan);
  for (const std::int32_t count : ranks) {
    const std::int64_t unit = hw::bytes_per_element(dtype) * count;
    for (const auto kind : {hw::CollectiveKind::all_gather, hw::CollectiveKind::reduce_scatter, hw::CollectiveKind::all_reduce}) {
      for (std::int64_t bytes = 1 << 12; bytes <= most; bytes *= 8)
        plan.add(point_of(target, hw::CollectiveShape{kind, dtype, (bytes + unit - 1) / unit * unit, {count, 1}}));
      if (kind != hw::CollectiveKind::all_reduce)
        plan.add(point_of(target, real::bench::product(dtype, target.own_clock), {kind, dtype, (kBeside + unit - 1) / unit * unit, {count, 1}}));
    }
  }
}

void add_program(const program::Program& program, std::int32_t ranks, BenchPlan& plan) {
  for (real::bench::KernelCase& kernel : real::bench::kernels_of(program)) plan.add(point_of(plan.target(), std::move(kernel), ranks));
  for (const program::CollectiveEntry& entry : program.collectives) {
    if (entry.shape.group.ranks() > 1) plan.add(point_of(plan.target(), entry.shape));
  }
}

OrderedJson timed(OrderedJson row, const real::bench::Quartiles& q) {
  if (!row.contains("clock")) row["clock"] = "device";  // no synchronisation is inside
  row["times"] = {{"median", microseconds(q.median)},
                  {"first_quartile", microseconds(q.first)},
                  {"third_quartile", microseconds(q.third)},
                  {"mean", microseconds(q.mean)},
                  {"repeats", q.repeats}};
  return row;
}

OrderedJson measurement_file(OrderedJson rows) {
  const HostMachine machine = host_machine();
  return measurement_file(std::move(rows), {{"gpu", machine.processor}, {"gpus", 1}, {"threads", machine.threads}, {"memory_bytes", machine.memory_bytes}});
}

OrderedJson measurement_file(OrderedJson rows, OrderedJson machine) {
  return {{"schema", calibration::kBenchSchema}, {"machine", std::move(machine)}, {"rows", std::move(rows)}};
}

}  // namespace stepcast::cli
