// Clocks, temperature and throttling in the measurement file of `bench`, from a monitor that says what the test wants; calibrate goes on reading the file.
#include "cli/bench/gpu_watch.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "calibration/read_measurements.hpp"
#include "cli/bench/rows.hpp"

namespace stepcast::cli {
namespace {

using namespace real::bench;
using Json = nlohmann::ordered_json;

/// Of one GPU, whose states come one after the other; the last one stays.
class Script final : public Monitor {
 public:
  explicit Script(std::vector<GpuState> states) : states_(std::move(states)) {}
  [[nodiscard]] std::size_t gpus() const override { return 1; }
  [[nodiscard]] Told<std::string> driver_version() override { return {"580.65.06", ""}; }
  [[nodiscard]] GpuLimits limits(std::size_t) override { return {{1980e6, ""}, {2619e6, ""}, {{}, "Not Supported"}}; }
  [[nodiscard]] GpuState state(std::size_t) override { return states_.at(std::min(next_++, states_.size() - 1)); }

 private:
  std::vector<GpuState> states_;
  std::size_t next_ = 0;
};

GpuState state_of(double sm_mhz, std::set<std::string> reasons = {}) {
  return {{sm_mhz * 1e6, ""}, {2619e6, ""}, {{}, "GPU is lost"}, {std::move(reasons), ""}};
}

Told<std::unique_ptr<Monitor>> script(std::vector<GpuState> states) { return {std::make_unique<Script>(std::move(states)), ""}; }

TEST_CASE("the measurement file says how the GPU fared: the range of each number over all looks, and every reason that was seen") {
  GpuWatch watch(script({state_of(1980), state_of(1500, {"power cap (software)"})}));
  Json machine{{"gpu", "NVIDIA H200"}};
  watch.add_to(machine);
  const Json expected = Json::parse(R"json({"gpu": "NVIDIA H200", "driver": "580.65.06", "watched": [{"gpu": 0, "looks": 2,
    "sm_clock": {"least": "1500 MHz", "median": "1740 MHz", "most": "1980 MHz"}, "highest_sm_clock": "1980 MHz",
    "memory_clock": {"least": "2619 MHz", "median": "2619 MHz", "most": "2619 MHz"}, "highest_memory_clock": "2619 MHz",
    "temperature": "not known: GPU is lost", "power_limit": "not known: Not Supported", "slowed_by": ["power cap (software)"]}]})json");
  CHECK(machine.dump() == expected.dump());
}

TEST_CASE("the watch looks first, last, and seldom between") {
  GpuWatch watch(script({state_of(1980)}));
  for (int i = 0; i < 1000; ++i) watch.between();
  Json machine;
  watch.add_to(machine);
  CHECK(machine["watched"][0]["looks"].get<int>() >= 2);
  CHECK(machine["watched"][0]["looks"].get<int>() < 100);
}

TEST_CASE("between looks again once its pause is over") {
  Script monitor({state_of(1980)});
  MonitorLog log(monitor);
  log.look_after(std::chrono::hours(1));
  log.look_after(std::chrono::hours(1));
  CHECK(log.states(0).size() == 1);
  log.look_after(std::chrono::nanoseconds(0));
  CHECK(log.states(0).size() == 2);
}

TEST_CASE("without a monitor the file says why, and calibrate reads it either way") {
  const auto parsed = [](GpuWatch watch) {
    Json machine{{"gpu", "NVIDIA H200"}};
    watch.add_to(machine);
    Json rows = Json::array({timed({{"what", "launch"}, {"shape", {{"call", "call"}}}}, {1e-6, 2e-6, 3e-6, 10, 2e-6})});
    return std::pair(machine, calibration::parse_measurements(measurement_file(std::move(rows), machine).dump(1), "m.json").rows);
  };
  const auto [without, rows] = parsed(GpuWatch({{}, "libnvidia-ml.so.1: cannot open shared object file"}));
  CHECK(without["watched"] == "not known: libnvidia-ml.so.1: cannot open shared object file");
  CHECK(without["driver"] == without["watched"]);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].gpu == "NVIDIA H200");
  CHECK(parsed(GpuWatch(script({state_of(1980, {"sync boost"})}))).second.size() == 1);
}

}  // namespace
}  // namespace stepcast::cli
