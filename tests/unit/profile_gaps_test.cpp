// Each cause of a gap, by the smallest profile that shows it. docs/diagnose.md, "Gaps".
#include <doctest/doctest.h>

#include "support/profile_json.hpp"
#include "support/profile_time.hpp"
#include "trace/profile/gaps.hpp"

using stepcast::test::ProfileJson, stepcast::test::us;
using namespace stepcast::trace::profile;

namespace {

/// Kernels on [0, 100) and [1100, 1200); the second was launched by a call on [launch, launch + 10).
ProfileJson two_kernels(double launch) {
  return ProfileJson().call("cudaLaunchKernel", -20, 10, 1).call("cudaLaunchKernel", launch, 10, 2).kernel("a", 0, 100, 7, 1).kernel("b", 1100, 100, 7, 2);
}

Cause cause_in(const ProfileJson& json) {
  const Profile p = json.read();
  const auto gaps = find_gaps(p, 0);
  REQUIRE(gaps);
  REQUIRE(gaps->gaps.size() == 1);
  return gaps->gaps[0].cause;
}

}  // namespace

TEST_CASE("the host was late: what it did decides") {
  CHECK(cause_in(two_kernels(1085)) == Cause::host_outside_torch_ops);
  CHECK(cause_in(two_kernels(1085).op("aten::mm", 500, 590)) == Cause::host_launch_bound);
  CHECK(cause_in(two_kernels(1085).range("forward", 100, 990)) == Cause::host_outside_torch_ops);
  CHECK(cause_in(two_kernels(1085).op("aten::mm", 100, 990).call("cudaFree", 200, 600, 3)) == Cause::host_allocator_call);
  CHECK(cause_in(two_kernels(1085).call("hipMemcpyWithStream", 200, 600, 3)) == Cause::host_memcpy_call);
  CHECK(cause_in(two_kernels(1085).range("enumerate(DataLoader)#x", 200, 600, 9)) == Cause::host_dataloader);
  CHECK(cause_in(two_kernels(1085).call("cudaStreamSynchronize", 200, 600, 3)) == Cause::host_sync);
  CHECK(cause_in(two_kernels(1085).call("cudaStreamSynchronize", 200, 600, 3).kernel("ncclAllReduce", 100, 600, 20, 4)) == Cause::host_sync_on_comm);
  CHECK(cause_in(two_kernels(1085).call("cudaStreamSynchronize", 200, 600, 3).kernel("Memcpy DtoH", 100, 600, 7, 4)) == Cause::host_sync_on_memcpy);
}

TEST_CASE("the launching thread is asked first, then all") {
  CHECK(cause_in(two_kernels(1085).call("cudaFree", 200, 600, 3, 2)) == Cause::host_allocator_call);
  CHECK(cause_in(two_kernels(1085).call("cudaFree", 200, 800, 3, 2).call("cudaStreamSynchronize", 200, 600, 4)) == Cause::host_sync);
}

TEST_CASE("launched in time: what the device ran decides") {
  CHECK(cause_in(two_kernels(50)) == Cause::device_wait_unexplained);
  CHECK(cause_in(two_kernels(50).kernel("ncclDevKernel_AllGather", 100, 600, 20, 4)) == Cause::device_wait_comm);
  CHECK(cause_in(two_kernels(50).kernel("Memcpy HtoD", 100, 600, 20, 4)) == Cause::device_wait_memcpy);
  CHECK(cause_in(two_kernels(50).kernel("c", 100, 60, 20, 4).kernel("c", 300, 30, 20, 5)) == Cause::device_wait_unexplained);
  CHECK(cause_in(ProfileJson().call("cudaLaunchKernel", 0, 1, 2).kernel("a", 0, 100, 7, 1).kernel("b", 109, 1, 7, 2)) == Cause::back_to_back_under_10us);
}

TEST_CASE("without the launch call") {
  const auto kernels = [](double second) { return ProfileJson().kernel("a", 0, 500, 7, 1).kernel("b", second, 500, 7, 2); };
  CHECK(cause_in(kernels(509)) == Cause::back_to_back_under_10us);
  CHECK(cause_in(kernels(600)) == Cause::no_launch_info);
  CHECK(cause_in(kernels(600).kernel("ncclX", 500, 50, 20, 3)) == Cause::comm_running);
  CHECK(cause_in(kernels(600).kernel("Memset", 500, 50, 20, 3)) == Cause::memcpy_running);
  CHECK(cause_in(kernels(600).kernel("c", 500, 50, 20, 3)) == Cause::other_stream_compute);
}

TEST_CASE("the exact split adds up, and kernels that overlap leave no gap") {
  const Profile p = two_kernels(600).kernel("ncclX", 50, 150, 20, 3).kernel("Memcpy", 150, 150, 21, 4).kernel("inside", 10, 20, 7, 5).read();
  const auto gaps = find_gaps(p, 0);
  REQUIRE(gaps);
  CHECK(gaps->main_stream == 7);
  CHECK(gaps->compute_kernels == 3);
  CHECK(gaps->overlapping_pairs == 1);
  CHECK(gaps->total == us(1000));
  CHECK(gaps->split.comm == us(100));
  CHECK(gaps->split.memory == us(100));
  CHECK(gaps->split.before_launch == us(310));
  CHECK(gaps->split.after_launch == us(490));
  CHECK_FALSE(find_gaps(ProfileJson().kernel("ncclX", 0, 1, 7, 1).read(), 0));
}
