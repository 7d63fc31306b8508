// Each rule by the smallest profile that meets it. docs/diagnose.md, "Findings".
#include <doctest/doctest.h>

#include <algorithm>

#include "support/profile_json.hpp"
#include "trace/profile/findings.hpp"

using stepcast::test::ProfileJson;
using namespace stepcast::trace::profile;

namespace {

const Finding* find(const std::vector<Finding>& findings, const char* name) {
  const auto at = std::find_if(findings.begin(), findings.end(), [name](const Finding& f) { return f.name == name; });
  return at == findings.end() ? nullptr : &*at;
}

std::vector<Finding> findings(const ProfileJson& json) { return findings_of(diagnose(json.read())); }

/// Kernels of 100 us at 0 and 1000; the second was launched late.
ProfileJson late() {
  return ProfileJson().call("cudaLaunchKernel", -20, 10, 1).call("cudaLaunchKernel", 985, 10, 2).kernel("gemm", 0, 100, 7, 1).kernel("gemm", 1000, 100, 7, 2);
}

}  // namespace

TEST_CASE("a busy device has no finding") {
  CHECK(findings(ProfileJson().call("cudaLaunchKernel", 0, 1, 1).kernel("gemm", 10, 1000, 7, 1)).empty());
  CHECK(findings(ProfileJson().op("aten::mm", 0, 1)).empty());
}

TEST_CASE("gaps become findings: share and bound are those of the gap") {
  const auto found = findings(late().range("enumerate(DataLoader)#x", 100, 880));
  const Finding* f = find(found, "starved_data_loader");
  REQUIRE(f);
  CHECK(f->share == doctest::Approx(900.0 / 1100));
  CHECK(f->upper_bound == f->share);
  CHECK(f->confidence > 0.9);
  CHECK(find(findings(late().call("cudaMalloc", 100, 880, 9)), "allocator_thrash"));
  CHECK(find(findings(late().op("aten::mm", 100, 880)), "launch_bound"));
  CHECK(find(findings(late()), "host_paused_outside_torch"));
  CHECK(find(findings(late().call("cudaMemcpyAsync", 100, 880, 9)), "blocking_copies"));
  CHECK(find(findings(late().call("cudaStreamSynchronize", 100, 880, 9)), "host_synchronisation"));
}

TEST_CASE("a launch-bound host: the outermost operator of the launches that came late") {
  const auto evidence = [](const ProfileJson& json) {
    const auto found = findings(json);
    const Finding* f = find(found, "launch_bound");
    REQUIRE(f);
    return f->evidence.at(1);
  };
  CHECK(evidence(late().op("aten::linear", 100, 890).op("aten::mm", 200, 785)) == "most by launches of aten::linear (0.9 ms)");
  CHECK(evidence(late().op("aten::mm", 100, 870)) == "by launches outside of operators");
}

TEST_CASE("all-gathers: serialised when they begin on an idle compute stream, not when they are hidden") {
  ProfileJson serial, hidden;
  for (int i = 0; i < 10; ++i) {
    const double at = 1000 * i;
    serial.call("cudaLaunchKernel", at + 510, 5, 10 + i)
        .kernel("gemm", at, 500, 7, 50 + i)
        .kernel("ncclDevKernel_AllGather_RING_LL", at + 520, 400, 20, 10 + i);
    hidden.kernel("gemm", at, 900, 7, 50 + i).kernel("ncclDevKernel_AllGather_RING_LL", at + 100, 400, 20, 10 + i);
  }
  const auto found = findings(serial);
  const Finding* f = find(found, "serialised_all_gathers");
  REQUIRE(f);
  CHECK(f->share == doctest::Approx(4000.0 / 9920));
  CHECK(f->evidence[1].starts_with("10 of 10 begin on an idle compute stream; 10 of these"));
  CHECK(find(found, "exposed_communication"));
  CHECK_FALSE(find(findings(hidden), "serialised_all_gathers"));
  CHECK_FALSE(find(findings(hidden), "exposed_communication"));
}

TEST_CASE("many short collectives") {
  ProfileJson json;
  for (int i = 0; i < 60; ++i) json.kernel("gemm", 100 * i, 60, 7, i).kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 100 * i + 60, 30, 20, 100 + i);
  const auto found = findings(json);
  REQUIRE(find(found, "small_message_collectives"));
  CHECK(find(found, "small_message_collectives")->share == doctest::Approx(1800.0 / 5990));
}

TEST_CASE("softmax between batched products, and no fused kernel") {
  const auto attention = [](const char* extra) {
    ProfileJson json;
    for (int i = 0; i < 4; ++i) json.op("aten::bmm", 100 * i, 5).kernel("gemm", 100 * i, 80, 7, i).kernel("softmax_warp_forward", 100 * i + 80, 20, 7, 10 + i);
    return json.kernel(extra, 400, 10, 7, 99);
  };
  CHECK(find(findings(attention("gemm")), "unfused_attention"));
  CHECK_FALSE(find(findings(attention("flash_fwd_kernel")), "unfused_attention"));
}

TEST_CASE("kernels that are longer beside communication") {
  const auto both = [](double beside) {
    ProfileJson json;
    for (int i = 0; i < 10; ++i)
      json.kernel("gemm", 1000 * i, 400, 7, i).kernel("gemm", 1000 * i + 500, beside, 7, 20 + i).kernel("ncclAllReduce", 1000 * i + 500, 480, 20, 40 + i);
    return json;
  };
  const auto found = findings(both(480));
  REQUIRE(find(found, "kernels_stretched_by_communication"));
  CHECK(find(found, "kernels_stretched_by_communication")->share == doctest::Approx(800.0 / 9980));
  CHECK_FALSE(find(findings(both(400)), "kernels_stretched_by_communication"));
}

TEST_CASE("reads of single values, and launches that load modules") {
  ProfileJson items;
  for (int i = 0; i < 30; ++i) items.op("aten::_local_scalar_dense", 10 * i, 5).kernel("gemm", 10 * i, 9, 7, i);
  CHECK(find(findings(items), "reads_of_single_values")->share == doctest::Approx(150.0 / 299));
  CHECK(find(findings(ProfileJson().call("cudaLaunchKernel", 0, 80000, 1).kernel("gemm", 80000, 100000, 7, 1)), "warm_up_recorded"));
}

TEST_CASE("the straggler is the rank that waits least") {
  const auto us = [](std::int64_t value) { return Time(std::chrono::microseconds(value)); };
  std::vector<RankSummary> ranks;
  for (std::int64_t r = 0; r < 4; ++r) ranks.push_back({r, {}, {{"allreduce", {{us(r == 2 ? 800 : 100), us(900)}}}}});
  const auto found = findings_across(compare_ranks(ranks), us(1000));
  REQUIRE(found.size() == 1);
  CHECK(found[0].name == "straggler");
  CHECK(found[0].where == "rank 2");
  CHECK(found[0].share == doctest::Approx(0.7));
  CHECK(findings_across(compare_ranks({ranks[0], ranks[1], ranks[3]}), us(1000)).empty());
}

TEST_CASE("one finding a name, with the number of others") {
  std::vector<Finding> all(3);
  all[0].name = all[2].name = "a";
  all[1].name = "b";
  all[0].share = 0.1, all[1].share = 0.2, all[2].share = 0.3;
  const auto one = merged(all);
  REQUIRE(one.size() == 2);
  CHECK(one[0].share == 0.3);
  CHECK(one[0].evidence.back() == "found 1 more time on other ranks or devices, with smaller shares");
}
