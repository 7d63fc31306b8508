// Whole forecasts on every node profile, and the order that physics gives to kinds of links. docs/hardware.md.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "hw_models/profiles.hpp"
#include "tests/support/forecast.hpp"

using namespace stepcast;

namespace {

constexpr const char* kSmall = R"({
  "schema": "stepcast.scenario/1", "name": "small",
  "model": {"style": "llama", "hidden": 1024, "layers": 2, "heads": 8, "ffn": 2816, "vocab": 32000},
  "cluster": {"node": "dgx-a100", "nodes": 2},
  "batch": {"seq_len": 2048},
  "run": {"steps": 3}})";

double step(const std::vector<std::string>& sets) {
  const auto report = test::forecast_text(kSmall, sets).report;
  REQUIRE(report.outcome == "ok");
  return report.step_time_s;
}

/// Large messages and little work, so that links decide.
double bound_by_links(std::vector<std::string> sets) {
  for (const char* set : {"/model/hidden=4096", "/model/heads=32", "/model/ffn=11008", "/batch/seq_len=512"}) sets.emplace_back(set);
  return step(sets);
}

}  // namespace

TEST_CASE("Every node profile with a network forecasts a step on one and two nodes, the GPU that it carries included") {
  for (const std::string& name : hw::node_names()) {
    if (hw::node_profile(name).at("nics") < 1) continue;
    CAPTURE(name);
    std::vector<std::string> sets = {"/cluster/node=" + name};
    if (!hw::gpu_profile(hw::node_profile(name).default_gpu).constants.contains("peak_bf16"))  // Volta
      sets.insert(sets.end(), {"/precision/param=fp16", "/precision/reduce=fp16", "/kernels/attention=efficient"});
    const double two = step(sets);
    sets.emplace_back("/cluster/nodes=1");
    CHECK(step(sets) > 0);
    CHECK(two > 0.2 * step(sets));
  }
}

TEST_CASE("The fewer GPUs NVLink joins, the slower: switch, pairs, none, no peer access") {
  const std::vector<std::string> one = {"/cluster/nodes=1"};
  const auto with = [&](std::vector<std::string> sets) {
    sets.insert(sets.end(), one.begin(), one.end());
    return bound_by_links(sets);
  };
  const double all = with({}), pairs = with({"/cluster/nvlink=pairs"}), none = with({"/cluster/nvlink=none"});
  CHECK(all < pairs);
  CHECK(pairs == doctest::Approx(none));  // a ring of eight runs over PCIe either way
  CHECK(none < with({"/cluster/nvlink=none", "/cluster/peer_access=false"}));
  // two GPUs joined by a bridge have all that NVLink gives
  CHECK(with({"/cluster/nvlink=pairs", "/cluster/gpus_per_node=2"}) == doctest::Approx(with({"/cluster/gpus_per_node=2"})));
  CHECK(with({"/cluster/nvlink=pairs", "/cluster/gpus_per_node=2"}) < with({"/cluster/nvlink=none", "/cluster/gpus_per_node=2"}));
}

TEST_CASE("The slower the transport, the slower the step: RDMA, no GPUDirect, sockets; a step bound by links loses about as much as its collectives") {
  const double rdma = bound_by_links({}), bounced = bound_by_links({"/cluster/gpudirect=false"}), tcp = bound_by_links({"/cluster/fabric=tcp"});
  CHECK(rdma < bounced);
  CHECK(bounced < tcp);
  CHECK(tcp / rdma > 3);
  CHECK(tcp / rdma < 8);
}
