// Hardware profiles: the compiled-in ones, clusters made of them, and the strict reader. docs/models.md, "Hardware profiles".
#include "hw_models/profiles.hpp"

#include <doctest/doctest.h>

#include "hw_models/embedded.hpp"
#include "hw_models/input_error.hpp"

using namespace stepcast;
using namespace stepcast::hw;

namespace {

std::string text_of(std::string_view name) {
  for (const EmbeddedFile& file : hardware_files()) {
    if (file.name == name) return std::string(file.text);
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("Every compiled-in profile can be read and is complete; every constant says where it comes from") {
  CHECK(gpu_names().size() >= 2);
  CHECK(node_names().size() >= 6);
  for (const std::string& name : gpu_names()) {
    for (const auto& [key, constant] : gpu_profile(name).constants) CHECK_MESSAGE(constant.source.size() > 10, name << " " << key);
  }
  for (const std::string& name : node_names()) {
    const Profile node = node_profile(name);
    for (const auto& [key, constant] : node.constants) CHECK_MESSAGE(constant.source.size() > 10, name << " " << key);
    CHECK_NOTHROW(gpu_profile(node.default_gpu));
  }
}

TEST_CASE("Units are read: 200 Gb/s are 25 GB/s, 79.2 GiB are 85.04 GB") {
  CHECK(node_profile("dgx-a100").at("nic_rate") == 25e9);
  CHECK(gpu_profile("a100-sxm4-80gb").at("device_memory") == doctest::Approx(79.2 * 1073741824.0));
  CHECK(gpu_profile("a100-sxm4-80gb").constants.at("peak_bf16").origin == Origin::datasheet);
}

TEST_CASE("A node's own constants stand before those of the parts that it includes") {
  CHECK(node_profile("dgx-a100").at("network_efficiency") == 0.93);
  CHECK(node_profile("p4d").at("network_efficiency") == 0.88);
}

TEST_CASE("Unknown hardware is an error that names the nearest") {
  CHECK_THROWS_WITH_AS(gpu_profile("a100-sxm4-80g"), doctest::Contains("did you mean a100-sxm4-80gb"), InputError);
  CHECK_THROWS_WITH_AS(node_profile("dgx-a10"), doctest::Contains("did you mean dgx-a100"), InputError);
  CHECK_THROWS_AS(gpu_profile("dgx-a100"), InputError);    // a node is no GPU
  CHECK_THROWS_AS(node_profile("nccl-a100"), InputError);  // a part is no node
  CHECK_THROWS_AS(gpu_profile(""), InputError);
}

TEST_CASE("A cluster: defaults of the node, overrides with source \"scenario\"") {
  const Cluster plain = make_cluster("dgx-a100", 4);
  CHECK(plain.gpu == "a100-sxm4-80gb");
  CHECK(plain.gpus_per_node == 8);
  CHECK(plain.nodes == 4);
  const Cluster other = make_cluster(
      "dgx-a100", 2, {.gpu = "a100-sxm4-40gb", .gpus_per_node = 4, .nics_per_node = 2, .nic_rate = BytesPerSecond(12.5e9), .oversubscription = 2.0});
  CHECK(other.gpu == "a100-sxm4-40gb");
  CHECK(other.gpus_per_node == 4);
  CHECK(other.node.at("nics") == 2);
  CHECK(other.node.at("nic_rate") == 12.5e9);
  CHECK(other.node.constants.at("oversubscription").source == "scenario");
  CHECK(other.node.constants.at("nvlink_rate").source != "scenario");
}

TEST_CASE("A cluster that cannot be is refused") {
  CHECK_THROWS_AS(make_cluster("dgx-a100", 0), InputError);
  CHECK_THROWS_AS(make_cluster("dgx-a100", -3), InputError);
  CHECK_THROWS_AS(make_cluster("dgx-a100", 2, {.nics_per_node = 0}), InputError);
  CHECK_NOTHROW(make_cluster("dgx-a100", 1, {.nics_per_node = 0}));
  CHECK_THROWS_AS(make_cluster("dgx-a100", 2, {.gpus_per_node = 0}), InputError);
  CHECK_THROWS_AS(make_cluster("dgx-a100", 2, {.oversubscription = 0.5}), InputError);
  CHECK_THROWS_AS(make_cluster("dgx-a100", 2, {.nic_rate = BytesPerSecond(-1)}), InputError);
}

TEST_CASE("The reader refuses what it does not know, with file and pointer") {
  const std::string good = text_of("a100-sxm4-80gb.json");
  CHECK(parse_gpu_profile(good, "my.json").at("processors") == 108);
  const auto refused = [&](const std::string& from, const std::string& to, const char* message) {
    CHECK_THROWS_WITH_AS(parse_gpu_profile(replaced(good, from, to), "my.json"), doctest::Contains(message), InputError);
  };
  refused("\"peak_bf16\"", "\"peak_bf61\"", "peak_bf");
  refused("\"312 TFLOP/s\"", "312", "/constants/peak_bf16/value");
  refused("\"312 TFLOP/s\"", "\"312 GB/s\"", "/constants/peak_bf16/value");
  refused("\"312 TFLOP/s\"", "\"-312 TFLOP/s\"", "/constants/peak_bf16/value");
  refused("\"kind\": \"datasheet\"", "\"kind\": \"guessed\"", "kind");
  refused("\"gemm_efficiency\": {\"value\": 0.775", "\"gemm_efficiency\": {\"value\": 7.8", "/constants/gemm_efficiency/value");
  refused("stepcast.hardware/1", "stepcast.hardware/9", "schema");
  refused("\"describes\": \"gpu\"", "\"describes\": \"node\"", "gpu");
}

TEST_CASE("A profile that lacks a required constant is refused by its name") {
  const std::string good = text_of("dgx-a100.json");
  CHECK_THROWS_WITH_AS(parse_node_profile(replaced(good, "\"nccl-a100\",", ""), "my.json"), doctest::Contains("is missing"), InputError);
  CHECK_THROWS_WITH_AS(parse_node_profile(replaced(good, "nccl-a100", "nccl-b300"), "my.json"), doctest::Contains("nccl-b300"), InputError);
  CHECK_THROWS_AS(parse_node_profile(text_of("nccl-a100.json"), "my.json"), InputError);
  CHECK_THROWS_WITH_AS(parse_node_profile(replaced(good, "nccl-a100", "a100-sxm4-80gb"), "my.json"), doctest::Contains("is not a part"), InputError);
  std::string many = "\"nccl-a100\"";
  for (int i = 0; i < 10; ++i) many += ", \"nccl-a100\"";
  CHECK_THROWS_WITH_AS(parse_node_profile(replaced(good, "\"nccl-a100\"", many), "my.json"), doctest::Contains("too many parts"), InputError);
}
