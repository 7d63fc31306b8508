// Each finer cause of a gap, by the smallest profile that shows it. docs/diagnose.md, "What a gap's end waited for".
#include <doctest/doctest.h>

#include <string>

#include "support/microseconds_by.hpp"
#include "support/profile_json.hpp"
#include "support/profile_time.hpp"
#include "trace/profile/findings.hpp"
#include "trace/profile/finer_causes.hpp"

using stepcast::test::ProfileJson, stepcast::test::us;
using namespace stepcast::trace::profile;

namespace {

using Parts = stepcast::test::MicrosecondsBy;

FinerCauses causes_in(const Profile& p) {
  const auto gaps = find_gaps(p, 0);
  REQUIRE(gaps);
  HostTime host(p);
  FinerCauses causes = finer_causes(p, 0, *gaps, host);
  Time sum{};
  for (const auto& [cause, part] : causes.by_cause) sum += part.total;
  CHECK(sum == gaps->total);
  return causes;
}

Parts parts_of(const FinerCauses& causes) {
  Parts parts;
  for (const auto& [cause, sum] : causes.by_cause) {
    if (sum.total > Time{}) parts[cause] = sum.total.count() / 1000;
  }
  return parts;
}

Parts parts_in(const ProfileJson& json) { return parts_of(causes_in(json.read())); }

/// Kernels on [0, 1000) and [9000, 10000); the second was launched by a call on [launch, launch + 10).
ProfileJson distant_kernels(double launch) {
  return ProfileJson().call("cudaLaunchKernel", -20, 10, 1).call("cudaLaunchKernel", launch, 10, 2).kernel("a", 0, 1000, 7, 1).kernel("b", 9000, 1000, 7, 2);
}

constexpr const char* kGather = "ncclDevKernel_AllGather_RING_LL";
constexpr const char* kScatter = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL";

}  // namespace

TEST_CASE("a late host: each moment counts as what the host was at") {
  const Parts parts = parts_in(distant_kernels(8990)
                                   .op("aten::mm", 1000, 1000)
                                   .call("cudaMalloc", 2500, 500, 3)
                                   .call("cudaStreamSynchronize", 3000, 1000, 4)
                                   .range("enumerate(DataLoader)#x", 4000, 2000));
  // 1000-2000 an op, 2000-2500 too short for a pause, 2500-3000 allocator, 3000-4000 wait, 4000-6000 loader, 6000-8990 nothing, then the launch.
  CHECK(parts == Parts{{"launch_bound", 1510}, {"allocator_call", 500}, {"synchronisation", 1000}, {"data_loader", 2000}, {"host_pause", 2990}});
}

TEST_CASE("a wait in FSDP's hooks that gather parameters is the rate limiter's") {
  CHECK(parts_in(distant_kernels(8990).call("cudaEventSynchronize", 1000, 7990, 3).range("FullyShardedDataParallel._pre_forward", 900, 8100)) ==
        Parts{{"rate_limiter", 7990}, {"launch_bound", 10}});
  CHECK(parts_in(distant_kernels(8990).range("FullyShardedDataParallel.rate_limiter", 1000, 7990)) == Parts{{"rate_limiter", 7990}, {"launch_bound", 10}});
  CHECK(parts_in(distant_kernels(8990).call("cudaEventSynchronize", 1000, 7990, 3)) == Parts{{"synchronisation", 7990}, {"launch_bound", 10}});
}

TEST_CASE("a host that waits for a copy is blocked by the copy") {
  CHECK(parts_in(distant_kernels(8990).call("cudaStreamSynchronize", 1000, 7990, 3).kernel("Memcpy HtoD", 1000, 7000, 7, 4)) ==
        Parts{{"blocking_copy", 7000}, {"synchronisation", 990}, {"launch_bound", 10}});
  CHECK(parts_in(distant_kernels(8990).call("cudaMemcpyAsync", 1000, 7990, 3)) == Parts{{"blocking_copy", 7990}, {"launch_bound", 10}});
}

TEST_CASE("late launches after a wait beside compute are that wait's cost, for as long as it was") {
  // The host waits for 600 us while "a" runs, and is busy afterwards.
  const auto json = [](const char* range) {
    ProfileJson out = distant_kernels(8990).op("aten::mm", 1000, 7990).call("cudaEventSynchronize", 400, 600, 3);
    return *range ? out.range(range, 400, 600) : out;
  };
  CHECK(parts_in(json("")) == Parts{{"synchronisation", 600}, {"launch_bound", 7400}});
  CHECK(parts_in(json("FullyShardedDataParallel.rate_limiter")) == Parts{{"rate_limiter", 600}, {"launch_bound", 7400}});
}

TEST_CASE("optimizer, clipping, steps") {
  CHECK(parts_in(distant_kernels(8990).op("aten::mul", 1000, 7990).range("Optimizer.step#AdamW.step", 900, 8300)) == Parts{{"optimizer_launches", 8000}});
  CHECK(parts_in(distant_kernels(8990).op("aten::mul", 1000, 7990).range("ProfilerStep#1", -100, 5000).range("ProfilerStep#2", 4900, 9000)) ==
        Parts{{"step_boundary", 8000}});
  const auto clip = [](ProfileJson json) { return json.op("aten::_foreach_norm", 900, 20).op("aten::_foreach_mul_", 8985, 30); };
  CHECK(parts_in(clip(distant_kernels(8990).call("cudaStreamSynchronize", 1000, 7980, 3))) == Parts{{"clipping", 8000}});
}

TEST_CASE("an all-gather: issued late, behind another collective, its own transfer") {
  // "b" was launched in time and waits for the gathering that ends at 9000.
  const auto json = [](double issue, double begin) {
    return distant_kernels(500)
        .call("cudaLaunchKernel", -15, 5, 9)
        .kernel(kGather, -10, 10, 20, 9)
        .call("cudaLaunchKernel", issue, 10, 3)
        .kernel(kGather, begin, 9000 - begin, 20, 3);
  };
  // Issued at once: it began when the one before had ended, so nothing could have been earlier.
  CHECK(parts_in(json(-10, 5)) == Parts{{"allgather_transfer", 8000}});
  // Issued 3 ms after the gap began, the host busy; since 0 the queue had been empty: it could have been over 3990 us earlier.
  CHECK(parts_in(json(3980, 3990).op("aten::mm", 1000, 2980)) == Parts{{"allgather_issued_late", 3990}, {"allgather_transfer", 4010}});
  // Issued early, but a reduce-scatter stood before it: until 3990 that one runs, and the queue had been empty from 0 to 1000.
  CHECK(parts_in(json(-10, 3990).call("cudaLaunchKernel", -10, 2, 4).kernel(kScatter, 1000, 2990, 20, 4)) ==
        Parts{{"allgather_behind_other", 3990}, {"allgather_transfer", 4010}});
}

TEST_CASE("other ranks: what was spent before the last one had come is the straggler's") {
  FinerCauses causes = causes_in(distant_kernels(500).call("cudaLaunchKernel", 400, 10, 3).kernel(kGather, 500, 8500, 20, 3).read());
  CHECK(parts_of(causes) == Parts{{"allgather_transfer", 8000}});
  settle_stragglers(causes, {{"allgather", {us(6000)}}});
  CHECK(parts_of(causes) == Parts{{"allgather_straggler", 6000}, {"allgather_transfer", 2000}});
}

TEST_CASE("a straggler before: what a collective behind it would have been earlier by") {
  // "m", launched between the two, is what the reduce-scatter reduces; it ended `early` before the gap. An all-gather needs nothing but its launch.
  const auto settled = [](const char* behind, std::int64_t early) {
    FinerCauses causes = causes_in(ProfileJson()
                                       .call("cudaLaunchKernel", -40, 5, 5)
                                       .call("cudaLaunchKernel", -30, 5, 3)
                                       .call("cudaLaunchKernel", -20, 5, 4)
                                       .call("cudaLaunchKernel", -12, 5, 1)
                                       .call("cudaLaunchKernel", -5, 5, 2)
                                       .kernel("m", 0, static_cast<double>(1000 - early), 7, 3)
                                       .kernel("a", static_cast<double>(1000 - early), static_cast<double>(early), 7, 1)
                                       .kernel(kScatter, 0, 3000, 20, 5)
                                       .kernel(behind, 3000, 6000, 20, 4)
                                       .kernel("b", 9000, 1000, 7, 2)
                                       .read());
    settle_stragglers(causes, {{"reducescatter", {us(2900), us(0)}}, {"allgather", {us(0)}}});
    return parts_of(causes);
  };
  // Of 2900 us that the first was late, 2000 lie in the gap; of the other 900 the second, had it begun so much earlier, would have saved 300, the gap beginning 300 after its input.
  CHECK(settled(kScatter, 300) == Parts{{"reducescatter_straggler", 2300}, {"reducescatter_transfer", 5700}});
  CHECK(settled(kScatter, 990) == Parts{{"reducescatter_straggler", 2900}, {"reducescatter_transfer", 5100}});
  CHECK(settled(kGather, 300).at("reducescatter_straggler") == 2900);
}

TEST_CASE("what nothing explains, and what the device itself does") {
  CHECK(parts_in(distant_kernels(500)) == Parts{{"unexplained", 8000}});
  CHECK(parts_in(distant_kernels(500).kernel("Memcpy HtoD", 2000, 6995, 20, 4)) == Parts{{"copy", 6995}, {"dispatch", 5}, {"no_launch_info", 1000}});
  CHECK(parts_in(ProfileJson().kernel("a", 0, 500, 7, 1).kernel("b", 600, 500, 7, 2)) == Parts{{"no_launch_info", 100}});
  CHECK(parts_in(distant_kernels(500).kernel("other", 8000, 995, 21, 4)) == Parts{{"other_stream_compute", 995}, {"dispatch", 5}, {"no_launch_info", 7000}});
}
