// Draws of constants and factors on them: which move, by how much, and what the interval of a run is then.
#include "cli/hardware.hpp"
#include "cli/inputs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "cli/interval.hpp"
#include "cli/predict.hpp"
#include "hw_models/input_error.hpp"

using namespace stepcast;

namespace {

scenarios::Scenario small() { return scenarios::read_scenario("7b-32xa100", std::vector<std::string>{"/model/layers=2", "/run/steps=3"}); }

TEST_CASE("a draw moves what is not a data sheet's, the same again for the same seed, and host times together") {
  const cli::Hardware plain = cli::hardware_of(small()), a = cli::drawn(plain, 1, 0), again = cli::drawn(plain, 1, 0), b = cli::drawn(plain, 1, 1);
  CHECK(a.gpu.at("sustained_clock") == again.gpu.at("sustained_clock"));
  CHECK(a.gpu.at("sustained_clock") != plain.gpu.at("sustained_clock"));
  CHECK(a.gpu.at("sustained_clock") != b.gpu.at("sustained_clock"));
  CHECK(a.gpu.at("peak_bf16") == plain.gpu.at("peak_bf16"));
  CHECK(a.gpu.at("device_memory") == plain.gpu.at("device_memory"));
  const auto move = [&](const char* name) { return std::log(a.cluster.node.at(name) / plain.cluster.node.at(name)); };
  CHECK(move("host_op_forward") == doctest::Approx(move("host_op_backward")));  // both assumed: one slow host
  CHECK(move("host_op_forward") / 0.25 == doctest::Approx(move("host_extra_launch") / 0.05));
}

TEST_CASE("the spread of a constant: its own, else its kind's") {
  hw::Constant constant{1, "", hw::Origin::fitted};
  CHECK(cli::spread_of(constant) == 0.08);
  constant.spread = 0.5;
  CHECK(cli::spread_of(constant) == 0.5);
  CHECK(cli::spread_of({1, "", hw::Origin::datasheet}) == 0);
  CHECK(cli::spread_of({1, "", hw::Origin::measured}) == 0.05);
  CHECK(cli::spread_of({1, "", hw::Origin::assumed}) == 0.25);
}

TEST_CASE("factors: a faster clock shortens the step, a slower host lengthens what the host binds") {
  const scenarios::Scenario scenario = small();
  const auto step_s = [&](const cli::MachineFactors& factors) {
    const cli::Hardware hardware = cli::scaled(cli::hardware_of(scenario), factors);
    return cli::forecast(scenario, cli::program_of(scenario), &hardware).step_time_s;
  };
  const double plain = step_s({});
  CHECK(plain == cli::predict(scenario).report.step_time_s);
  CHECK(step_s({.clock = 1.1}) < plain);
  CHECK(step_s({.network = 0.5}) > plain);
  CHECK(step_s({.latency = 20}) > plain);
  CHECK(step_s({.host = 30}) > plain);
}

TEST_CASE("a cause moves its own constants by their spread, and no others") {
  const cli::Hardware plain = cli::hardware_of(small()), moved = cli::moved_up(plain, "host_");
  int changed = 0;
  for (const auto& [name, constant] : plain.cluster.node.constants) {
    const double ratio = constant.value == 0 ? 1 : moved.cluster.node.at(name) / constant.value;
    if (ratio == 1) continue;
    ++changed;
    CHECK_MESSAGE(name.starts_with("host_"), name);
    CHECK_MESSAGE(ratio == doctest::Approx(std::exp(cli::spread_of(constant))), name);
  }
  CHECK(changed > 3);
  const std::vector<std::string> causes = cli::uncertain_causes(plain);
  CHECK(std::set<std::string>(causes.begin(), causes.end()).size() == causes.size());
  CHECK(std::find(causes.begin(), causes.end(), "host_") != causes.end());
}

TEST_CASE("the interval holds the forecast, is the same for the same seed, and is refused where nothing is uncertain") {
  const scenarios::Scenario scenario = small();
  const double step = cli::predict(scenario).report.step_time_s;
  const cli::IntervalRow a = cli::interval_of(scenario, 40, 3), b = cli::interval_of(scenario, 40, 3);
  CHECK(a.step_time_s.p10 < step);
  CHECK(a.step_time_s.p90 > step);
  CHECK(a.step_time_s.p10 == b.step_time_s.p10);
  CHECK(a.mfu.p10 < a.mfu.p90);
  CHECK(a.left_out == 0);
  CHECK(a.step_time_s.p90 / a.step_time_s.p10 < 1.5);
  REQUIRE(!a.causes.empty());
  for (std::size_t i = 1; i < a.causes.size(); ++i) CHECK(std::abs(a.causes[i].step_time_s - step) <= std::abs(a.causes[i - 1].step_time_s - step));
  scenarios::Scenario fixed = scenario;
  fixed.fixed_costs.emplace();
  CHECK_THROWS_AS(cli::interval_of(fixed, 10, 0), InputError);
}

}  // namespace

TEST_CASE("the allocator's settings: all of them, and a fraction of the device as one of the pool") {
  scenarios::Allocator allocator;
  allocator.max_split_size = 64 << 20;
  allocator.expandable_segments = true;
  allocator.roundup_power2_divisions = 8;
  allocator.garbage_collection_threshold = 0.75;
  allocator.memory_fraction = 0.4;
  const memory::Settings settings = cli::allocator_settings(allocator, 80e9, 64e9);
  CHECK(settings.max_split_size == 64 << 20);
  CHECK(settings.expandable_segments);
  CHECK(settings.roundup_power2_divisions == 8);
  CHECK(settings.garbage_collection_threshold == 0.75);
  CHECK(settings.memory_fraction == 0.5);  // 32 GB of 64
  allocator.memory_fraction = 0.9;
  CHECK(cli::allocator_settings(allocator, 80e9, 64e9).memory_fraction == 1);
}
