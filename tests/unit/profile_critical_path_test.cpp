// The path back through a step, by the smallest profiles that show each turn. docs/diagnose.md, "Critical path".
#include <doctest/doctest.h>

#include <string>

#include "support/microseconds_by.hpp"
#include "support/profile_json.hpp"
#include "support/profile_time.hpp"
#include "trace/profile/critical_path.hpp"
#include "trace/profile/metrics.hpp"

using stepcast::test::ProfileJson, stepcast::test::us;
using namespace stepcast::trace::profile;

namespace {

using Kinds = stepcast::test::MicrosecondsBy;

std::vector<CriticalPath> paths_in(const ProfileJson& json) {
  const Profile p = json.read();
  HostTime host(p);
  std::vector<CriticalPath> paths = critical_paths(p, 0, steps_of(p), host);
  for (const CriticalPath& path : paths) {
    Time kinds{}, parts{};
    for (const auto& [kind, time] : path.by_kind) kinds += time;
    for (const PathPart& part : path.parts) parts += part.total;
    CHECK(kinds == path.time.end - path.time.begin);
    CHECK(parts == kinds);
  }
  return paths;
}

Kinds kinds_in(const ProfileJson& json) {
  const auto paths = paths_in(json);
  REQUIRE(paths.size() == 1);
  Kinds kinds;
  for (const auto& [kind, time] : paths[0].by_kind) kinds[kind] = time.count() / 1000;
  return kinds;
}

/// A step on [0, 1000) whose first kernel runs on [110, 600), launched on [100, 105).
ProfileJson step() {
  return ProfileJson().range("ProfilerStep#1", 0, 1000).op("aten::mm", 0, 100).call("cudaLaunchKernel", 100, 5, 1).kernel("a", 110, 490, 7, 1);
}

}  // namespace

TEST_CASE("stream order, the launch, the host before it") {
  // b follows a at once; it was launched early. Before a lie its launch and the host.
  CHECK(kinds_in(step().call("cudaLaunchKernel", 105, 5, 2).kernel("b", 602, 898, 7, 2)) ==
        Kinds{{"compute", 490 + 898}, {"launch_latency", 5 + 2}, {"launch_bound", 105}});
  // b was launched late: the host is on the path, and a is not.
  CHECK(kinds_in(step().op("aten::mm", 105, 700).call("cudaLaunchKernel", 795, 5, 2).kernel("b", 802, 698, 7, 2)) ==
        Kinds{{"compute", 698}, {"launch_latency", 2}, {"launch_bound", 800}});
}

TEST_CASE("another stream's operation that ended right before") {
  const ProfileJson json = step()
                               .call("cudaLaunchKernel", 105, 5, 2)
                               .kernel("ncclDevKernel_AllGather_RING_LL", 115, 785, 20, 2)
                               .call("cudaLaunchKernel", 110, 5, 3)
                               .kernel("b", 905, 595, 7, 3);
  CHECK(kinds_in(json) == Kinds{{"compute", 595}, {"allgather", 785}, {"launch_latency", 5 + 5}, {"launch_bound", 110}});
  auto path = paths_in(json)[0];
  settle_stragglers(path, {{"allgather", {us(500)}}});
  CHECK(path.by_kind.at("allgather") == us(285));
  CHECK(path.by_kind.at("allgather_straggler") == us(500));
}

TEST_CASE("a host that waited for the device: the path goes on there") {
  const ProfileJson json =
      step().call("cudaStreamSynchronize", 105, 500, 9).op("aten::mm", 605, 100).call("cudaLaunchKernel", 705, 5, 2).kernel("b", 712, 788, 7, 2);
  // b, its launch, the host since a's end, a, its launch, the host.
  CHECK(kinds_in(json) == Kinds{{"compute", 788 + 490}, {"launch_latency", 2 + 5}, {"synchronisation", 5}, {"launch_bound", 105 + 105}});
}

TEST_CASE("the step ends on the host, or on the device; steps without operations have no path") {
  // The device is done at 600; the host goes on alone until 1000.
  CHECK(kinds_in(step().op("aten::add", 105, 895)) == Kinds{{"launch_bound", 1000}});
  CHECK(paths_in(step().range("ProfilerStep#2", 1000, 500)).size() == 1);
  CHECK(paths_in(ProfileJson().kernel("a", 0, 10, 7, 1)).empty());
  // Without steps: from the first launch on.
  const auto paths = paths_in(ProfileJson().call("cudaLaunchKernel", 100, 5, 1).kernel("a", 110, 490, 7, 1));
  REQUIRE(paths.size() == 1);
  CHECK(paths[0].step.empty());
  CHECK(paths[0].time == Span{us(100), us(600)});
}
