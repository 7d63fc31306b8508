// See levers.hpp.
#include "cli/run/levers.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/validate/parallel.hpp"

namespace stepcast::cli {
namespace {

constexpr double kPerDoubling = 4;

void multiply(Hardware& hardware, const char* constant, double factor) { hardware.cluster.node.constants.find(constant)->second.value *= factor; }

/// A GPU of the cluster reaches others of its node by NVLink, if there is any.
Lever within_a_node(const hw::Profile& node) {
  if (node.at("nvlink_reach") > 1) return {"bandwidth of NVLink", [](auto&, Hardware& hardware, double factor) { multiply(hardware, "nvlink_rate", factor); }};
  return {"bandwidth of PCIe", [](auto&, Hardware& hardware, double factor) { multiply(hardware, "pcie_rate", factor); }};
}

std::vector<double> factor_grid(double smallest) {
  const auto points = static_cast<int>(std::lround(std::log2(kLargestFactor / smallest) * kPerDoubling)) + 1;
  std::vector<double> factors;
  for (int i = 0; i < points; ++i) factors.push_back(smallest * std::exp2(i / kPerDoubling));
  return factors;
}

}  // namespace

std::vector<Lever> links(const scenarios::Scenario& scenario) {
  const hw::Cluster cluster = scenarios::hardware(scenario);
  std::vector<Lever> found;
  if (cluster.nodes > 1)
    found.push_back({"bandwidth between nodes", [](auto&, Hardware& hardware, double factor) {
                       multiply(hardware, "nic_rate", factor);
                       multiply(hardware, "nic_limit", factor);
                     }});
  if (cluster.gpus_per_node > 1) found.push_back(within_a_node(cluster.node));
  return found;
}

Lever host_speed() {
  return {"speed of the host", [](scenarios::Scenario& scenario, Hardware&, double factor) { scenario.host.scale /= factor; }};
}

Report pulled(const scenarios::Scenario& scenario, const program::Program& program, const Lever& lever, double factor) {
  scenarios::Scenario changed = scenario;
  Hardware hardware = hardware_of(scenario);
  lever.pull(changed, hardware, factor);
  return forecast(changed, program, &hardware);
}

Crossing first_crossing(const std::function<Report(double)>& at, const std::function<bool(const Report&)>& holds, double smallest, unsigned threads) {
  const std::vector<double> factors = factor_grid(smallest);
  const auto ran_and_holds = [&](const Report& report) { return report.outcome == "ok" && holds(report); };
  std::vector<Report> reports(factors.size());
  for_each_index(factors.size(), threads, [&](std::size_t i) { reports[i] = at(factors[i]); });
  const auto first = std::find_if(reports.begin(), reports.end(), ran_and_holds);
  if (first == reports.end()) return {false, factors.back(), std::move(reports.back())};
  const auto index = static_cast<std::size_t>(first - reports.begin());
  Crossing crossing{true, factors[index], *first, std::all_of(first, reports.end(), ran_and_holds), index == 0};
  double below = index == 0 ? crossing.factor : factors[index - 1];
  while (crossing.factor / below > 1 + kFactorPrecision) {
    const double middle = std::sqrt(below * crossing.factor);
    Report report = at(middle);
    if (ran_and_holds(report)) std::tie(crossing.factor, crossing.at) = std::pair(middle, std::move(report));
    else below = middle;
  }
  return crossing;
}

}  // namespace stepcast::cli
