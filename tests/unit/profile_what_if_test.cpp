// Replays by hand: what is on the critical path moves, what is not does not. docs/diagnose.md, "Forecast gains".
#include <doctest/doctest.h>

#include "support/profile_json.hpp"
#include "support/profile_time.hpp"
#include "trace/profile/what_if.hpp"

using stepcast::test::ProfileJson, stepcast::test::us;
using namespace stepcast::trace::profile;

namespace {

/// A kernel of 100 us; the host then loads for 900 us and launches the next.
ProfileJson starved() {
  return ProfileJson().call("cudaLaunchKernel", 0, 5, 1).kernel("a", 10, 100, 7, 1).call("cudaLaunchKernel", 1000, 5, 2).kernel("b", 1010, 100, 7, 2);
}

}  // namespace

TEST_CASE("without a change a replay is as long as the recording") {
  CHECK(replayed_span(starved().read(), 0, {}) == us(1100));
  CHECK(replayed_span(ProfileJson().op("aten::mm", 0, 1).read(), 0, {}) == us(0));
}

TEST_CASE("host time that the device waited for: the launch comes earlier, but not before the kernel ahead has ended") {
  const Profile p = starved().read();
  CHECK(replayed_span(p, 0, {{{us(200), us(500)}}, false}) == us(800));
  CHECK(replayed_span(p, 0, {{{us(50), us(950)}}, false}) == us(205));  // 5 us after the kernel ahead, as it was after its launch
  CHECK(replayed_span(p, 0, {{{us(10), us(1000)}}, false}) == us(205));
}

TEST_CASE("host time beside a busy device is no gain") {
  const Profile p =
      ProfileJson().call("cudaLaunchKernel", 0, 5, 1).kernel("a", 10, 1000, 7, 1).call("cudaLaunchKernel", 500, 5, 2).kernel("b", 1012, 100, 7, 2).read();
  CHECK(replayed_span(p, 0, {{{us(100), us(400)}}, false}) == us(1102));
}

TEST_CASE("an operation of another stream that overtakes the first one makes nothing longer") {
  // Kernel a begins 1,000 us after its launch: the host is ahead. The copy waits for nothing but its launch, which comes 900 us earlier without the call before it.
  const Profile p = ProfileJson()
                        .call("cudaLaunchKernel", 0, 5, 1)
                        .call("cudaMalloc", 10, 1100, 8)
                        .call("cudaMemcpyAsync", 1200, 5, 2)
                        .kernel("a", 1000, 1000, 7, 1)
                        .kernel("copy", 1210, 100, 12, 2)
                        .read();
  CHECK(replayed_span(p, 0, {}) == us(1000));
  CHECK(replayed_span(p, 0, {{{us(10), us(1110)}}, false}) == us(1000));
}

TEST_CASE("a wait of the host ends with the operation that it waited for") {
  // The host synchronises with kernel a, then launches b.
  const Profile p = starved().call("cudaMalloc", 20, 500, 8).call("cudaStreamSynchronize", 600, 5, 9).read();
  CHECK(replayed_span(p, 0, {}) == us(1100));
  const Profile q = ProfileJson()
                        .call("cudaLaunchKernel", 0, 5, 1)
                        .kernel("a", 10, 300, 7, 1)
                        .call("cudaStreamSynchronize", 200, 115, 9)
                        .call("cudaLaunchKernel", 400, 5, 2)
                        .kernel("b", 410, 100, 7, 2)
                        .read();
  CHECK(replayed_span(q, 0, {}) == us(500));
  CHECK(replayed_span(q, 0, {{{us(20), us(190)}}, false}) == us(500));  // it only waits longer
  CHECK(replayed_span(q, 0, {{{us(320), us(390)}}, false}) == us(430));
  CHECK(replayed_span(q, 0, {{}, true}) == us(405));  // launched beside a; 5 us behind it
}

TEST_CASE("a kernel that waited for another stream waits for it again") {
  const Profile p = ProfileJson()
                        .call("cudaLaunchKernel", 0, 5, 1)
                        .call("cudaLaunchKernel", 500, 5, 2)
                        .call("cudaLaunchKernel", 510, 5, 3)
                        .kernel("a", 10, 100, 7, 1)
                        .kernel("ncclAllGather", 506, 200, 20, 2)
                        .kernel("b", 708, 100, 7, 3)
                        .read();
  CHECK(replayed_span(p, 0, {{{us(100), us(400)}}, false}) == us(498));
}
