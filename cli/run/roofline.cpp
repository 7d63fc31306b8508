// See roofline.hpp.
#include "cli/run/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/inputs.hpp"
#include "cli/report/table.hpp"
#include "cli/run/micro_batches.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/memory_class_names.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

/// Kernels that are one row; copies to and from the host are none of the device's kernels.
std::string class_of(const hw::KernelShape& shape) {
  switch (shape.kind) {
    case hw::KernelKind::gemm: return fmt::format("{}products, {}", shape.batch > 1 ? "batched " : "", hw::name(shape.dtype));
    case hw::KernelKind::attention_forward: return fmt::format("attention forward, {}", hw::name(shape.dtype));
    case hw::KernelKind::attention_backward: return fmt::format("attention backward, {}", hw::name(shape.dtype));
    case hw::KernelKind::memory_bound: return hw::name(shape.memory);
    default: return "";
  }
}

void add_kernel(const hw::KernelShape& shape, double alone_s, const hw::CostModel& model, RooflineRow& row) {
  const double flops = hw::executed_flops(shape).in(flop);
  ++row.count;
  row.flops += flops;
  row.bytes += hw::dram_bytes(shape).in(byte);
  row.time_s += alone_s;
  row.peak = flops > 0 ? model.peak(shape.dtype).si() : 0;
  row.bandwidth = model.gpu().at("dram_bandwidth");
}

std::vector<RooflineRow> roofline_rows(const scenarios::Scenario& scenario) {
  const program::Program program = program_of(scenario);
  const Inputs inputs = inputs_of(scenario, program);
  std::map<std::string, RooflineRow> classes;
  const program::Range step = program.steps.back();
  for (std::size_t i = step.begin; i < step.end; ++i) {
    const program::Op& op = program.ops[i];
    if (op.kind != program::OpKind::launch) continue;
    const hw::KernelShape& shape = program.kernels[op.id].shape;
    const std::string name = class_of(shape);
    if (name.empty()) continue;
    RooflineRow& row = classes[name];
    row.kernels = name;
    add_kernel(shape, to_seconds(inputs.prices.kernels[op.id].alone).in(second), *inputs.model, row);
  }
  std::vector<RooflineRow> rows;
  for (auto& [name, row] : classes) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.time_s > b.time_s; });
  return rows;
}

RooflineBatch roofline_with(const scenarios::Scenario& scenario, std::int64_t micro_batch) {
  RooflineBatch batch{micro_batch, roofline_rows(with_batch(scenario, micro_batch))};
  std::erase_if(batch.rows, [](const RooflineRow& row) { return row.flops == 0; });
  return batch;
}

OrderedJson roofline_json(const std::vector<RooflineRow>& rows) {
  OrderedJson json = OrderedJson::array();
  for (const RooflineRow& r : rows)
    json.push_back({{"kernels", r.kernels},
                    {"count", r.count},
                    {"flops", r.flops},
                    {"bytes", r.bytes},
                    {"flops_per_byte", r.intensity()},
                    {"time_s", r.time_s},
                    {"flops_per_s", r.flops / r.time_s},
                    {"bytes_per_s", r.bytes / r.time_s},
                    {"peak_flops_per_s", r.peak},
                    {"peak_bytes_per_s", r.bandwidth},
                    {"ridge_flops_per_byte", r.ridge()},
                    {"bound", r.compute_bound() ? "compute" : "memory"},
                    {"attained", r.attained()}});
  return json;
}

/// The rate that bounds, as attained and as possible.
std::pair<std::string, std::string> bounding_rates(const RooflineRow& r) {
  if (r.compute_bound()) return {fmt::format("{:.1f} TFLOP/s", r.flops / r.time_s / 1e12), fmt::format("{:.1f} TFLOP/s", r.peak / 1e12)};
  return {fmt::format("{:.0f} GB/s", r.bytes / r.time_s / 1e9), fmt::format("{:.0f} GB/s", r.bandwidth / 1e9)};
}

void add_cells(const RooflineRow& r, std::vector<std::string> cells, Table& table) {
  const auto [rate, roof] = bounding_rates(r);
  for (std::string cell : {r.kernels, std::to_string(r.count), fmt::format("{:.2f}", r.flops / 1e12), fmt::format("{:.2f}", r.bytes / 1e9),
                           r.flops > 0 ? fmt::format("{:.0f}", r.intensity()) : "", time_text(r.time_s), rate, roof, percent_text(r.attained()),
                           std::string(r.compute_bound() ? "compute" : "memory")})
    cells.push_back(std::move(cell));
  table.add(std::move(cells));
}

}  // namespace

Roofline roofline(const scenarios::Scenario& scenario) {
  if (scenario.fixed_costs) throw InputError(scenario.name, "/fixed_costs", "fixed costs have no roof");
  Roofline result{roofline_rows(scenario), {}};
  const std::int64_t now = scenario.batch.micro_batch;
  if (now % 2 == 0) result.batches.push_back(roofline_with(scenario, now / 2));
  for (const std::int64_t factor : {1, 2, 4}) {
    if (factor * now <= most_sequences(scenario)) result.batches.push_back(roofline_with(scenario, factor * now));
  }
  return result;
}

OrderedJson to_json(const Roofline& roofline) {
  OrderedJson json = {{"kernels", roofline_json(roofline.rows)}, {"micro_batches", OrderedJson::array()}};
  for (const RooflineBatch& batch : roofline.batches)
    json["micro_batches"].push_back({{"micro_batch", batch.micro_batch}, {"kernels", roofline_json(batch.rows)}});
  return json;
}

std::string to_text(const Roofline& roofline) {
  Table kernels({"", "kernels", "TFLOP", "GB", "FLOP/byte", "time", "attained", "roof", "of roof", "bound"}, {0, 9});
  for (const RooflineRow& row : roofline.rows) add_cells(row, {}, kernels);
  Table batches({"micro-batch", "", "kernels", "TFLOP", "GB", "FLOP/byte", "time", "attained", "roof", "of roof", "bound"}, {0, 1, 10});
  for (const RooflineBatch& batch : roofline.batches) {
    for (const RooflineRow& row : batch.rows) add_cells(row, {std::to_string(batch.micro_batch)}, batches);
  }
  std::string text = "Roofline: the kernels of a step on one GPU, each alone on the device\n" + kernels.render();
  for (const RooflineRow& row : roofline.rows) {
    if (row.flops > 0) text += fmt::format("  {}: compute bounds from {:.0f} FLOP/byte on\n", row.kernels, row.ridge());
  }
  return text + "The same with other micro-batches, whether they fit or not\n" + batches.render();
}

}  // namespace stepcast::cli
