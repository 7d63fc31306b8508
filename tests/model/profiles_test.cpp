// Hardware profiles: the compiled-in ones, clusters made of them, and the strict reader. docs/models.md, "Hardware profiles".
#include "hw_models/profiles.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "hw_models/embedded.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/profile_text.hpp"
#include "hw_models/rates.hpp"
#include "hw_models/text_file.hpp"
#include "support/paths.hpp"

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

TEST_CASE("A profile that is like another assumes what it does not say") {
  const Profile h200 = gpu_profile("h200-sxm-141gb"), h100 = gpu_profile("h100-sxm5-80gb");
  CHECK(h200.constants.at("dram_bandwidth").origin == Origin::datasheet);
  CHECK(h200.at("dram_bandwidth") == 4.8e12);
  for (const auto& [key, constant] : h100.constants) {
    const Constant& own = h200.constants.at(key);
    if (own.source.rfind("as h100-sxm5-80gb: ", 0) != 0) continue;
    CAPTURE(key);
    CHECK(own.value == constant.value);
    CHECK(own.origin == Origin::assumed);
    CHECK(own.source == "as h100-sxm5-80gb: " + constant.source);
  }
  CHECK(h200.constants.at("gemm_efficiency").origin == Origin::assumed);
  CHECK(gpu_profile("v100-sxm2-16gb").constants.at("memory_fixed_time").source.rfind("as v100-sxm2-32gb: as a100-sxm4-80gb: ", 0) == 0);
  const std::string text = text_of("h200-sxm-141gb.json");
  CHECK_THROWS_WITH_AS(parse_gpu_profile(replaced(text, "\"like\": \"h100-sxm5-80gb\"", "\"like\": \"dgx-h100\""), "my.json"),
                       doctest::Contains("describes something else"), InputError);
  CHECK_THROWS_WITH_AS(parse_gpu_profile(replaced(text, "\"like\": \"h100-sxm5-80gb\"", "\"like\": \"b300\""), "my.json"), doctest::Contains("b300"),
                       InputError);
}

TEST_CASE("docs/hardware.md counts the kinds of every profile's constants") {
  const std::string page = read_text_file(test::source_dir() + "/docs/hardware.md", 1 << 20);
  const auto row = [](const std::string& name, const Profile& profile) {
    std::map<Origin, int> kinds;
    for (const auto& [key, constant] : profile.constants) ++kinds[constant.origin];
    return fmt::format("| `{}` | {} / {} / {} / {} |", name, kinds[Origin::measured], kinds[Origin::datasheet], kinds[Origin::fitted], kinds[Origin::assumed]);
  };
  for (const std::string& name : gpu_names()) CHECK_MESSAGE(page.find(row(name, gpu_profile(name))) != std::string::npos, row(name, gpu_profile(name)));
  for (const std::string& name : node_names()) CHECK_MESSAGE(page.find(row(name, node_profile(name))) != std::string::npos, row(name, node_profile(name)));
}

TEST_CASE("Links that a scenario sets against the node's: only what differs counts as the scenario's") {
  const Cluster tcp = make_cluster("dgx-a100", 2, {.fabric = Fabric::tcp});
  CHECK(tcp.node.at("nic_limit") == 3.2e9);
  CHECK(tcp.node.constants.at("nic_limit").origin == Origin::assumed);
  CHECK(tcp.node.constants.at("nic_limit").source.rfind("scenario (fabric): ", 0) == 0);
  CHECK(make_cluster("dgx-a100", 2, {.fabric = Fabric::infiniband}).node.constants.at("nic_limit").origin == Origin::datasheet);
  CHECK(make_cluster("dgx-a100", 2, {.nvlink = NvLink::pairs}).node.at("nvlink_reach") == 2);
  CHECK(make_cluster("dgx-a100", 2, {.nvlink = NvLink::none}).node.constants.at("nvlink_reach").source == "scenario");
  CHECK(make_cluster("dgx-a100", 2, {.nvlink = NvLink::nvswitch}).node.constants.at("nvlink_reach").origin == Origin::datasheet);
  CHECK(make_cluster("dgx-a100", 2, {.gpus_per_node = 16}).node.at("nvlink_reach") == 16);
  CHECK(make_cluster("l40s", 1, {.gpus_per_node = 4}).node.at("nvlink_reach") == 1);
  CHECK(make_cluster("l40s", 1, {.nvlink_rate = BytesPerSecond(1e11), .nvlink = NvLink::nvswitch}).node.at("nvlink_reach") == 8);
  CHECK(make_cluster("dgx-a100", 2, {.gpudirect = false}).node.at("network_efficiency") == 0.7);
  CHECK(make_cluster("dgx-a100", 2, {.gpudirect = true}).node.at("network_efficiency") == 0.93);
}

TEST_CASE("A setting of links that would have no effect is refused") {
  CHECK_THROWS_WITH_AS(make_cluster("l40s", 1, {.nvlink = NvLink::nvswitch}), doctest::Contains("give /cluster/nvlink_rate too"), InputError);
  CHECK_THROWS_WITH_AS(make_cluster("l40s", 1, {.nvlink_rate = BytesPerSecond(1e11)}), doctest::Contains("without NVLink"), InputError);
  CHECK_THROWS_WITH_AS(make_cluster("dgx-a100", 1, {.peer_access = false}), doctest::Contains("/cluster/peer_access"), InputError);
  CHECK_NOTHROW(make_cluster("dgx-a100", 1, {.nvlink = NvLink::pairs, .peer_access = false}));
  CHECK_THROWS_WITH_AS(make_cluster("dgx-a100", 2, {.fabric = Fabric::tcp, .gpudirect = false}), doctest::Contains("/cluster/gpudirect"), InputError);
}

TEST_CASE("A GPU without units for a type says so: V100 has none for bf16 and tf32") {
  const Profile v100 = gpu_profile("v100-sxm2-32gb");
  CHECK(peak_rate(v100, Dtype::fp16) == 125 * TFLOPS);
  CHECK_THROWS_WITH_AS(peak_rate(v100, Dtype::bf16), doctest::Contains("choose fp16"), InputError);
  CHECK_THROWS_AS(peak_rate(v100, Dtype::tf32), InputError);
  CHECK(peak_rate(gpu_profile("a100-sxm4-80gb"), Dtype::fp16) == 312 * TFLOPS);
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
  refused("\"gemm_efficiency\": {\"value\": 0.8", "\"gemm_efficiency\": {\"value\": 7.8", "/constants/gemm_efficiency/value");
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

TEST_CASE("A profile that is written reads back as it was, with the spread of its constants") {
  Profile gpu = gpu_profile("a100-sxm4-80gb");
  gpu.constants.at("gemm_efficiency") = {0.7123, "a fit of a \"test\"", Origin::fitted, 0.0125};
  gpu.constants.at("gemm_fixed_time").value = 5.4321e-6;
  const Profile again = parse_gpu_profile(gpu_profile_text(gpu), "my.json");
  const Profile node = node_profile("p5"), node_again = parse_node_profile(node_profile_text(node), "node.json");
  CHECK(node_again.default_gpu == node.default_gpu);
  using Both = std::pair<const Profile*, const Profile*>;
  for (const auto& [before, after] : {Both(&gpu, &again), Both(&node, &node_again)}) {
    CHECK(after->name == before->name);
    REQUIRE(after->constants.size() == before->constants.size());
    for (const auto& [key, constant] : before->constants) {
      CAPTURE(key);
      const Constant& read = after->constants.at(key);
      CHECK(read.value == constant.value);
      CHECK(read.source == constant.source);
      CHECK(read.origin == constant.origin);
      CHECK(read.spread == constant.spread);
    }
  }
  CHECK(again.constants.at("gemm_efficiency").spread == 0.0125);
  const std::string text = gpu_profile_text(gpu);
  CHECK_THROWS_WITH_AS(parse_gpu_profile(replaced(text, "0.0125", "-1"), "my.json"), doctest::Contains("/constants/gemm_efficiency/spread"), InputError);
  CHECK_THROWS_WITH_AS(gpu_profile("no-such-file.json"), doctest::Contains("cannot be opened"), InputError);
}
