// Memory over time, by hand. docs/diagnose.md, "Memory over time".
#include <doctest/doctest.h>

#include <string>

#include "support/profile_json.hpp"
#include "trace/profile/memory_timeline.hpp"
#include "trace/profile/metrics.hpp"

using stepcast::test::ProfileJson;
using namespace stepcast::trace::profile;

namespace {

std::string instant(double ts, long bytes, long allocated, long reserved, int type = 1) {
  return fmt::format(
      R"({{"ph":"i","name":"[memory]","pid":100,"tid":1,"ts":{:.3f},"args":{{"Bytes":{},"Device Type":{},"Device Id":0,"Total Allocated":{},"Total Reserved":{}}}}})",
      ts, bytes, type, allocated, reserved);
}

std::map<std::string, MemoryTimeline> timelines_in(const ProfileJson& json) {
  const Profile p = json.read();
  return memory_timelines(p, steps_of(p));
}

}  // namespace

TEST_CASE("the peak and where it was, steps, what the reserve did") {
  const auto memory = timelines_in(ProfileJson()
                                       .range("ProfilerStep#1", 0, 100)
                                       .range("ProfilerStep#2", 100, 100)
                                       .range("forward", 110, 50)
                                       .op("aten::mm", 115, 20)
                                       .op("aten::add", 140, 5)
                                       .raw(instant(10, 100, 100, 200))
                                       .raw(instant(50, -60, 40, 200))
                                       .raw(instant(120, 500, 540, 600))
                                       .raw(instant(130, -500, 40, 600))
                                       .raw(instant(142, 500, 540, 550))
                                       .raw(instant(250, 10, 550, 650, 0)));
  REQUIRE(memory.size() == 2);
  const MemoryTimeline& m = memory.at("1:0");
  CHECK(m.peak.allocated == 540);
  CHECK(m.peak.time == Time(120'000));
  CHECK(m.step == "ProfilerStep#2");
  CHECK(m.op == "aten::mm");
  CHECK(m.peak_reserved == 600);
  CHECK(m.growths == 1);
  CHECK(m.grown_bytes == 400);
  CHECK(m.drops == 1);
  CHECK(m.dropped_bytes == 50);
  REQUIRE(m.steps.size() == 2);
  CHECK(m.steps[0].peak_allocated == 100);
  CHECK(m.steps[0].allocations == 100);
  CHECK(m.steps[1].peak_reserved == 600);
  CHECK(m.steps[1].allocations == 1000);
  CHECK(m.curve.size() == 5);
  CHECK(memory.at("0:0").op.empty());
}

TEST_CASE("the curve keeps the highest point of each stretch; instants without totals count for nothing") {
  ProfileJson json;
  for (int i = 0; i < 2000; ++i) json.raw(instant(i, 1, i % 10 == 5 ? 1000 + i : 10, 2000));
  const auto memory = timelines_in(json);
  const MemoryTimeline& m = memory.at("1:0");
  CHECK(m.curve.size() <= static_cast<std::size_t>(kMemoryPoints));
  CHECK(m.curve.size() > 150);
  for (const MemoryPoint& point : m.curve) CHECK(point.allocated >= 1000);
  CHECK(m.peak.allocated == 2995);
  const auto none = timelines_in(ProfileJson().raw(R"({"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":1,"args":{"Bytes":5,"Device Type":1,"Device Id":0}})"));
  CHECK(none.empty());
}
