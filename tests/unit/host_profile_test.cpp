// A measurement file becomes the profiles of a host, planted values and all. docs/calibration.md, "Shared processors".
#include "calibration/host_profile.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <utility>
#include <vector>

#include "calibration/read_measurements.hpp"
#include "hw_models/cost_model.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/profiles.hpp"

using namespace stepcast;
using namespace stepcast::calibration;

namespace {

std::string row(const std::string& keys, const std::string& time) {
  return "{" + keys + R"(, "times": {"median": ")" + time + R"(", "first_quartile": ")" + time + R"(", "third_quartile": ")" + time + R"(", "repeats": 9}})";
}

const std::string kProduct = R"("what": "gemm", "dtype": "fp32", "shape": {"m": 64, "n": 32, "k": 16}, "name": "aten::mm", "ranks": 2)";

HostProfiles of(const std::string& rows) {
  const std::string text =
      R"({"schema": "stepcast.bench/1", "machine": {"gpu": "a processor", "threads": 3, "memory_bytes": 6000000000}, "rows": [)" + rows + "]}";
  return host_profiles({hw::gpu_profile("host-cpu"), hw::node_profile("host-threads")}, {parse_measurements(text, "dir/host.json")});
}

}  // namespace

TEST_CASE("Kernels, collectives, calls and facts of the machine") {
  const HostProfiles profiles =
      of(row(kProduct, "11 us") + "," + row(R"("what": "launch", "shape": {"call": "call"})", "2 us") + "," +
         row(R"("what": "launch", "shape": {"call": "latency"})", "30 us") + "," +
         row(R"("what": "allocation", "shape": {"call": "cached", "size": "1 MiB"})", "200 ns") + "," +
         row(R"("what": "collective", "dtype": "fp32", "shape": {"collective": "all_gather", "size": "1 MiB", "nodes": 1, "ranks_per_node": 2})", "500 us"));
  REQUIRE(profiles.gpu.kernels.size() == 1);
  CHECK(profiles.gpu.kernels[0].name == "aten::mm");
  CHECK(profiles.gpu.kernels[0].ranks == 2);
  CHECK(profiles.gpu.kernels[0].time.value == doctest::Approx(11e-6));
  CHECK(profiles.gpu.kernels[0].time.source == "stepcast bench: host.json");
  CHECK(profiles.gpu.at("launch_latency") == doctest::Approx(30e-6));
  CHECK(profiles.gpu.at("shared_processors") == 3);
  CHECK(profiles.gpu.at("device_memory") == 6e9);
  CHECK(profiles.node.at("host_op_forward") == doctest::Approx(2e-6));
  CHECK(profiles.node.at("host_collective_call") == doctest::Approx(2e-6));
  CHECK(profiles.node.at("host_allocation") == doctest::Approx(2e-7));
  CHECK(profiles.node.constants.at("host_allocation").origin == hw::Origin::measured);
  CHECK(profiles.node.at("host_fsdp_pre_forward") == 0);
  REQUIRE(profiles.node.collectives.size() == 1);
  CHECK(profiles.node.collectives[0].time.value == doctest::Approx(500e-6));
}

TEST_CASE("A mean, where the file has one, comes before the median") {
  const std::string with_mean =
      R"("what": "launch", "shape": {"call": "latency"}, "times": {"median": "30 us", "first_quartile": "29 us", "third_quartile": "31 us",
    "mean": "36 us", "repeats": 9}})";
  CHECK(of(row(kProduct, "11 us") + ",{" + with_mean).gpu.at("launch_latency") == doctest::Approx(36e-6));
}

TEST_CASE("Segments by size: a line by hand, through nothing or level where it would go below zero, in proportion where there is one size") {
  const auto line = [](std::initializer_list<std::pair<double, double>> gib_and_seconds) {
    std::vector<Measurement> rows;
    for (const auto& [gib, seconds] : gib_and_seconds) {
      Measurement row;
      row.bytes = static_cast<std::int64_t>(gib * 1073741824);
      row.time = Seconds(seconds);
      rows.push_back(row);
    }
    const SegmentTime time = segment_time(rows);
    return std::pair(time.fixed.si(), time.per_gib.si());
  };
  const auto is = [](std::pair<double, double> time, double fixed, double per_gib) {
    CHECK(time.first == doctest::Approx(fixed));
    CHECK(time.second == doctest::Approx(per_gib));
  };
  is(line({{1, 3}, {2, 5}, {4, 9}}), 1, 2);
  is(line({{1, 1}, {2, 4}}), 0, 1.2);  // size / time is 1 and 1/2: (1 + 1/2) / (1 + 1/4)
  is(line({{1, 4}, {2, 2}}), 2.4, 0);  // 1 / time is 1/4 and 1/2: (1/4 + 1/2) / (1/16 + 1/4)
  is(line({{2, 5}}), 0, 2.5);
}

TEST_CASE("Segments that bench measured stand in the profile") {
  const auto segment = [](const char* call, const char* size, const char* time) {
    return row(std::string(R"("what": "allocation", "shape": {"call": ")") + call + R"(", "size": ")" + size + "\"}", time);
  };
  const HostProfiles profiles = of(row(kProduct, "11 us") + "," + segment("malloc", "256 MiB", "2 s") + "," + segment("malloc", "1 GiB", "5 s") + "," +
                                   segment("free", "256 MiB", "1 s") + "," + segment("free", "1 GiB", "4 s") + "," + segment("free", "512 MiB", "3 s"));
  CHECK(profiles.gpu.at("device_malloc") == doctest::Approx(1));  // 1 s + 4 s per GiB
  CHECK(profiles.gpu.at("device_malloc_per_gib") == doctest::Approx(4));
  CHECK(profiles.gpu.at("device_free") == doctest::Approx(3));
}

TEST_CASE("An operation that was measured twice, and a file without operations") {
  CHECK_THROWS_WITH_AS(of(row(kProduct, "11 us") + "," + row(kProduct, "12 us")), doctest::Contains("/rows/1"), InputError);
  CHECK_THROWS_WITH_AS(of(row(R"("what": "launch", "shape": {"call": "call"})", "2 us")), doctest::Contains("no kernel and no collective"), InputError);
}
