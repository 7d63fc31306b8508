// See gpu_watch.hpp.
#include "cli/bench/gpu_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hw_models/ordered_json.hpp"
#include "real_backend/bench/repeat.hpp"

namespace stepcast::cli {
namespace {

using real::bench::GpuState;
using real::bench::Told;

constexpr std::chrono::milliseconds kPause{100};  // between two looks: a GPU's control of power takes about as long, a look far less

std::string not_known(const std::string& why) { return "not known: " + why; }

/// As text with its unit, which `scale` turns it into.
struct Unit {
  const char* name;
  double scale;
  [[nodiscard]] std::string text(double value) const { return fmt::format("{:.6g} {}", value * scale, name); }
};
constexpr Unit kMegahertz{"MHz", 1e-6}, kWatt{"W", 1}, kCelsius{"C", 1};

OrderedJson one(const Told<double>& told, const Unit& unit) { return told.value ? unit.text(*told.value) : not_known(told.why_not); }

/// Over all looks that were told.
OrderedJson range(const std::vector<GpuState>& states, Told<double> GpuState::*which, const Unit& unit) {
  std::vector<double> values;
  for (const GpuState& state : states)
    if ((state.*which).value) values.push_back(*(state.*which).value);
  if (values.empty()) return not_known((states.back().*which).why_not);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const std::string low = unit.text(*least), high = unit.text(*most);
  return {{"least", low}, {"median", unit.text(real::bench::quartiles(values).median)}, {"most", high}};
}

OrderedJson slowed_by(const std::vector<GpuState>& states) {
  std::set<std::string> reasons;
  bool told = false;
  for (const GpuState& state : states) {
    if (!state.slowed_by.value) continue;
    told = true;
    reasons.insert(state.slowed_by.value->begin(), state.slowed_by.value->end());
  }
  return told ? OrderedJson(reasons) : OrderedJson(not_known(states.back().slowed_by.why_not));
}

OrderedJson gpu_json(const real::bench::MonitorLog& log, std::size_t gpu) {
  const real::bench::GpuLimits limits = log.monitor().limits(gpu);
  const std::vector<GpuState>& states = log.states(gpu);
  OrderedJson sm = range(states, &GpuState::sm_clock, kMegahertz), memory = range(states, &GpuState::memory_clock, kMegahertz);
  return {{"gpu", gpu},
          {"looks", states.size()},
          {"sm_clock", std::move(sm)},
          {"highest_sm_clock", one(limits.sm_clock, kMegahertz)},
          {"memory_clock", std::move(memory)},
          {"highest_memory_clock", one(limits.memory_clock, kMegahertz)},
          {"temperature", range(states, &GpuState::temperature, kCelsius)},
          {"power_limit", one(limits.power, kWatt)},
          {"slowed_by", slowed_by(states)}};
}

}  // namespace

GpuWatch::GpuWatch(Told<std::unique_ptr<real::bench::Monitor>> monitor) : monitor_(std::move(monitor)) {
  if (monitor_.value) log_.emplace(**monitor_.value).look();
}

void GpuWatch::between() {
  if (log_) log_->look_after(kPause);
}

void GpuWatch::add_to(nlohmann::ordered_json& machine) {
  if (!log_) {
    machine["driver"] = machine["watched"] = not_known(monitor_.why_not);
    return;
  }
  log_->look();
  const Told<std::string> driver = log_->monitor().driver_version();
  machine["driver"] = driver.value ? *driver.value : not_known(driver.why_not);
  machine["watched"] = OrderedJson::array();
  for (std::size_t gpu = 0; gpu < log_->monitor().gpus(); ++gpu) machine["watched"].push_back(gpu_json(*log_, gpu));
}

}  // namespace stepcast::cli
