// The measurement file of `stepcast bench` (docs/measurement_file.md) and how kinds of files are told apart.
#include "calibration/measurement_file.hpp"

#include <doctest/doctest.h>

#include "calibration/read_measurements.hpp"
#include "hw_models/input_error.hpp"

using namespace stepcast;
using namespace stepcast::calibration;

namespace {

const std::string kTimes = R"("times": {"median": "12 us", "first_quartile": "11 us", "third_quartile": "13 us", "repeats": 50})";

std::string file_with(const std::string& row) {
  return R"({"schema": "stepcast.bench/1", "machine": {"gpu": "NVIDIA H200", "driver": "570"}, "rows": [{)" + row + ", " + kTimes + "}]}";
}

Measurement only(const std::string& row) {
  const MeasurementFile file = parse_measurements(file_with(row), "m.json");
  REQUIRE(file.rows.size() == 1);
  CHECK(file.rows[0].time.in(microsecond) == doctest::Approx(12));
  CHECK(file.rows[0].gpu == "NVIDIA H200");
  return file.rows[0];
}

}  // namespace

TEST_CASE("Each kind of row") {
  CHECK(only(R"("what": "gemm", "dtype": "bf16", "shape": {"m": 64, "n": 32, "k": 16})").kernel ==
        hw::KernelShape{.kind = hw::KernelKind::gemm, .m = 64, .n = 32, .k = 16});
  CHECK(only(R"("what": "gemm", "dtype": "bf16", "shape": {"m": 64, "n": 32, "k": 16, "backward": true})").kernel ==
        hw::KernelShape{.kind = hw::KernelKind::gemm, .backward = true, .m = 64, .n = 32, .k = 16});
  const Measurement attention = only(R"("what": "attention", "dtype": "bf16", "clock": "host",
    "shape": {"kernel": "flash2", "pass": "both", "causal": true, "batch": 1, "seq_len": 2048, "heads": 8, "kv_heads": 2, "head_dim": 64})");
  CHECK(attention.both_passes);
  CHECK(attention.host_timed);
  CHECK(attention.kernel.kv_heads == 2);
  CHECK(only(R"("what": "memory_bound", "dtype": "bf16", "shape": {"class": "softmax", "read": "1 MiB", "write": "1 MiB"})").kernel.write_bytes == 1048576);
  CHECK(only(R"("what": "copy", "shape": {"direction": "device_to_device", "size": "1 MB"})").kernel.memory == hw::MemoryClass::copy);
  CHECK(only(R"("what": "launch", "shape": {"call": "latency"})").timed == Timed::launch_latency);
  CHECK(only(R"("what": "allocation", "shape": {"call": "malloc", "size": "2 MiB"})").bytes == 2097152);
  const Measurement collective =
      only(R"("what": "collective", "dtype": "bf16", "shape": {"collective": "all_gather", "size": "64 MiB", "nodes": 2, "ranks_per_node": 8})");
  CHECK(collective.collective == hw::CollectiveShape{.bytes = 67108864, .group = {8, 2}});
}

TEST_CASE("Copies over the host's bus are counted and not used") {
  const MeasurementFile file = parse_measurements(file_with(R"("what": "copy", "shape": {"direction": "host_to_device", "size": "1 MB"})"), "m.json");
  CHECK(file.rows.empty());
  CHECK(file.left_out.size() == 1);
}

TEST_CASE("The file is strict") {
  const auto refused = [](const std::string& text, const char* message) {
    CHECK_THROWS_WITH_AS(parse_measurements(text, "m.json"), doctest::Contains(message), InputError);
  };
  const std::string gemm = R"("what": "gemm", "dtype": "bf16", "shape": {"m": 64, "n": 32, "k": 16})";
  refused(file_with(R"("what": "gem", "dtype": "bf16", "shape": {})"), "/rows/0/what");
  refused(file_with(R"("what": "gemm", "dtype": "bf16", "shape": {"m": 64, "n": 32})"), "/rows/0/shape/k");
  refused(file_with(R"("what": "gemm", "dtype": "bf16", "shape": {"m": 64, "n": 32, "k": 16, "o": 1})"), "unknown key");
  refused(file_with(R"("what": "launch", "dtype": "bf16", "shape": {"call": "call"})"), "/rows/0/dtype");
  refused(R"({"schema": "stepcast.bench/2", "machine": {}, "rows": []})", "unknown schema");
  refused(R"({"schema": "stepcast.bench/1", "machine": {}, "rows": [], "more": 1})", "unknown key");
  refused(R"({"schema": "stepcast.hardware/1"})", "a profile is given with --gpu or --node");
  refused(R"({"a": 1})", "is not a kind of measurements");
  refused("", "is empty");
  refused("hello\n", "is not a kind of measurements");
  for (const char* mean : {"-1 us", "12", "0 s", "nan us"}) {
    std::string text = file_with(gemm);
    refused(text.insert(text.find("\"repeats\""), std::string("\"mean\": \"") + mean + "\", "), "m.json: /rows/0/times/mean");
  }
  std::string bad = file_with(gemm);
  bad.replace(bad.find("11 us"), 5, "14 us");
  refused(bad, "is not between the quartiles");
}
