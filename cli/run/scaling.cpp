// See scaling.hpp.
#include "cli/run/scaling.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/predict.hpp"
#include "cli/report/table.hpp"
#include "cli/validate/parallel.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

/// A sharding that these nodes can't have concerns this row alone.
ScalingRow scaled_to(const scenarios::ScenarioTemplate& scenario, std::int64_t nodes) {
  ScalingRow row;
  row.nodes = nodes;
  try {
    const std::string set = fmt::format("/cluster/nodes={}", nodes);
    const scenarios::Scenario sized = scenario.with({&set, 1});
    row.gpus = scenarios::ranks(sized);
    const Report report = forecast(sized, program_of(sized));
    row.outcome = report.outcome;
    row.step_time_s = report.step_time_s;
    row.tokens_per_s_per_gpu = report.tokens_per_s_per_gpu;
    row.mfu = report.mfu;
    row.comm_s = report.comm_s;
    row.exposed_comm_s = report.exposed_comm_s;
    row.peak_reserved_bytes = report.peak_reserved_bytes;
    row.bound = report.bound;
    row.has_mfu = report.has_peak;
  } catch (const InputError& error) { row.outcome = error.what(); }
  return row;
}

void set_efficiency(std::vector<ScalingRow>& rows) {
  double first = 0;
  for (ScalingRow& row : rows) {
    if (row.outcome != "ok") continue;
    if (first == 0) first = row.tokens_per_s_per_gpu;
    row.efficiency = row.tokens_per_s_per_gpu / first;
  }
}

}  // namespace

std::vector<ScalingRow> scaling(const scenarios::ScenarioTemplate& scenario, const std::vector<std::int64_t>& nodes, unsigned threads) {
  std::vector<ScalingRow> rows(nodes.size());
  for_each_index(nodes.size(), threads, [&](std::size_t i) { rows[i] = scaled_to(scenario, nodes[i]); });
  set_efficiency(rows);
  return rows;
}

OrderedJson to_json(const std::vector<ScalingRow>& rows) {
  OrderedJson json = OrderedJson::array();
  for (const ScalingRow& r : rows) {
    const bool ok = r.outcome == "ok";
    const auto known = [](bool is, const OrderedJson& value) { return is ? value : OrderedJson(nullptr); };
    json.push_back({{"nodes", r.nodes},
                    {"gpus", known(r.gpus > 0, r.gpus)},
                    {"outcome", r.outcome},
                    {"step_time_s", known(ok, r.step_time_s)},
                    {"tokens_per_s_per_gpu", known(ok, r.tokens_per_s_per_gpu)},
                    {"mfu", known(ok && r.has_mfu, r.mfu)},
                    {"comm_s", known(ok, r.comm_s)},
                    {"exposed_comm_s", known(ok, r.exposed_comm_s)},
                    {"efficiency", known(ok, r.efficiency)},
                    {"peak_reserved_bytes", known(ok, r.peak_reserved_bytes)},
                    {"bound", known(ok, r.bound)}});
  }
  return json;
}

std::string to_text(const std::vector<ScalingRow>& rows) {
  Table table({"nodes", "GPUs", "step time", "tokens/s/GPU", "efficiency", "MFU", "exposed communication", "reserved", "bound"}, {8});
  for (const ScalingRow& r : rows) {
    std::vector<std::string> cells = {std::to_string(r.nodes), r.gpus > 0 ? std::to_string(r.gpus) : "-"};
    if (r.outcome == "ok")
      for (std::string cell : {time_text(r.step_time_s), count_text(r.tokens_per_s_per_gpu), percent_text(r.efficiency), r.has_mfu ? percent_text(r.mfu) : "-",
                               fmt::format("{} ({})", time_text(r.exposed_comm_s), percent_text(r.exposed_comm_s / r.step_time_s)),
                               size_text(static_cast<double>(r.peak_reserved_bytes)), r.bound})
        cells.push_back(std::move(cell));
    else cells.insert(cells.end(), {"-", "-", "-", "-", "-", "-", r.outcome});
    table.add(std::move(cells));
  }
  return "By number of nodes, each GPU with the same batch\n" + table.render();
}

}  // namespace stepcast::cli
