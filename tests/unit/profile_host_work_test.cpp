// What counts as the host's own work, by the smallest profiles that show it. docs/diagnose.md, "From a trace to a scenario".
#include <doctest/doctest.h>

#include "support/profile_json.hpp"
#include "support/profile_time.hpp"
#include "trace/profile/host_work.hpp"

using stepcast::test::ProfileJson, stepcast::test::us;
using namespace stepcast::trace::profile;

namespace {

Time work_in(const ProfileJson& json) {
  const Profile profile = json.read();
  return host_work(profile, steps_of_host(profile));
}

/// Two launch calls of 10 us.
ProfileJson two_calls() { return ProfileJson().range("ProfilerStep#1", 0, 2000).call("cudaLaunchKernel", 0, 10, 1).call("cudaLaunchKernel", 10, 10, 2); }

}  // namespace

TEST_CASE("a step's host works where it is in ops, calls and short stretches of Python; not where it waits, allocates or pauses") {
  CHECK(work_in(two_calls().op("aten::mm", 20, 1980)) == us(2000));
  CHECK(work_in(two_calls().op("aten::mm", 20, 580).op("aten::mm", 1500, 500)) == us(2000));  // 900 us of Python
  CHECK(work_in(two_calls().op("aten::mm", 1100, 900)) == us(920));                           // a pause of 1080 us
  CHECK(work_in(two_calls().op("aten::mm", 20, 1980).call("cudaStreamSynchronize", 500, 700, 3)) == us(1300));
  CHECK(work_in(two_calls().op("aten::mm", 20, 1980).call("cudaMalloc", 500, 100, 3)) == us(1900));
  CHECK(work_in(two_calls().op("aten::mm", 20, 1980).range("enumerate(DataLoader)#x", 500, 600)) == us(1400));
}

TEST_CASE("a full launch queue is no work: named by the file, or seen by a call that takes more than ten times the usual") {
  CHECK(work_in(two_calls().op("aten::mm", 20, 1980).event("overhead", "Command Buffer Full", 600, 250, 9)) == us(1750));
  CHECK(work_in(two_calls().op("aten::mm", 20, 1980).call("cudaLaunchKernel", 500, 400, 3)) == us(1700));  // 100 us of the call are taken for work
  CHECK(work_in(two_calls().op("aten::mm", 20, 1980).call("cudaLaunchKernel", 500, 400, 3).event("overhead", "Command Buffer Full", 500, 400, 9)) == us(1600));
  CHECK(work_in(two_calls().op("aten::mm", 20, 1980).call("cudaLaunchKernel", 500, 90, 3)) == us(2000));
  // 80 us and 120 us of Python around a wait of 1,200 us: work, not a pause of 1,400 us
  CHECK(work_in(two_calls().op("aten::mm", 20, 480).op("aten::mm", 1900, 100).event("overhead", "Command Buffer Full", 580, 1200, 9)) == us(800));
}

TEST_CASE("steps: the first of several is left out; without any, from the first launch to the last") {
  CHECK(work_in(two_calls().op("aten::mm", 20, 1980).range("ProfilerStep#2", 2000, 500).op("aten::mm", 2000, 500)) == us(500));
  CHECK(work_in(ProfileJson().op("aten::mm", 0, 800).call("cudaLaunchKernel", 100, 10, 1).call("cudaLaunchKernel", 690, 10, 2)) == us(600));
  CHECK(work_in(ProfileJson().op("aten::mm", 0, 800)) == us(0));
  CHECK(steps_of_host(ProfileJson().op("aten::mm", 0, 800).read()).empty());
}

TEST_CASE("a forward: from its first launch to the last before a backward") {
  const Profile profile = ProfileJson()
                              .range("ProfilerStep#1", 0, 2000)
                              .call("cudaLaunchKernel", 100, 10, 1)
                              .call("cudaLaunchKernel", 300, 10, 2)
                              .op("autograd::engine::evaluate_function: MmBackward0", 400, 300)
                              .call("cudaLaunchKernel", 450, 10, 3)
                              .call("cudaLaunchKernel", 900, 10, 4)
                              .kernel("a", 200, 50, 7, 1)
                              .kernel("b", 320, 80, 7, 2)
                              .kernel("c", 460, 90, 7, 3)
                              .kernel("d", 910, 90, 7, 4)
                              .read();
  const auto forwards = forwards_of(profile, 0, Passes(profile));
  REQUIRE(forwards.size() == 1);
  CHECK(forwards[0].host.time == Span{us(100), us(310)});
  CHECK(forwards[0].device == Span{us(200), us(400)});
}
