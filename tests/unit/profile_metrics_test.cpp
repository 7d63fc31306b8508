// Numbers of small profiles, added up by hand. docs/diagnose.md.
#include <doctest/doctest.h>

#include "support/profile_json.hpp"
#include "support/profile_time.hpp"
#include "trace/profile/coverage.hpp"
#include "trace/profile/metrics.hpp"

using stepcast::test::ProfileJson, stepcast::test::us;
using namespace stepcast::trace::profile;

TEST_CASE("device times: unions, exposure, the identity") {
  // compute [0,10) and [5,15); comm [12,20); copy [18,30); set [40,41)
  const TimedOps ops = {{{us(0), us(10)}, DeviceKind::compute},
                        {{us(5), us(15)}, DeviceKind::compute},
                        {{us(12), us(20)}, DeviceKind::communication, true},
                        {{us(18), us(30)}, DeviceKind::copy},
                        {{us(40), us(41)}, DeviceKind::set}};
  const DeviceTimes t = device_times(ops);
  CHECK(t.span == us(41));
  CHECK(t.compute == us(15));
  CHECK(t.comm == us(8));
  CHECK(t.memory == us(13));
  CHECK(t.exposed_comm == us(5));
  CHECK(t.exposed_comm_not_under_compute_or_memory == us(3));
  CHECK(t.exposed_memory == us(11));
  CHECK(t.idle == us(10));
  CHECK(t.kernel_sum == us(28));
  CHECK(t.compute + t.exposed_comm + t.exposed_memory + t.idle == t.span);
  const TraceLensTimes lens = tracelens_times(ops);
  CHECK(lens.computation == us(16));
  CHECK(lens.exposed_memcpy == us(10));
  const DeviceTimes window = device_times_within(ops, {us(10), us(22)});
  CHECK(window.span == us(12));
  CHECK(window.busy == us(12));
  CHECK(window.compute == us(5));
  CHECK(device_times({}).span == us(0));
}

TEST_CASE("coverage of windows") {
  const Coverage c({{us(0), us(10)}, {us(20), us(30)}, {us(25), us(40)}});
  CHECK(c.within(us(5), us(25)) == us(10));
  CHECK(c.within(us(-5), us(100)) == us(30));
  CHECK(c.within(us(12), us(18)) == us(0));
  CHECK(c.within(us(30), us(20)) == us(0));
  CHECK(Coverage().within(us(0), us(9)) == us(0));
}

TEST_CASE("launches, queues and steps") {
  const Profile p = ProfileJson()
                        .range("ProfilerStep#1", 0, 50)
                        .range("ProfilerStep#2", 50, 50)
                        .call("cudaLaunchKernel", 0, 2, 1)
                        .call("cudaLaunchKernel", 4, 2, 2)
                        .call("cudaLaunchKernel", 60, 2, 3)
                        .kernel("a", 10, 10, 7, 1)
                        .kernel("b", 30, 40, 7, 2)
                        .kernel("a", 61, 9, 8, 3)
                        .kernel("late", 90, 5, 7, 99)
                        .read();
  const DeviceMetrics m = device_metrics(p).at(0);
  CHECK(m.launches.matched == 3);
  CHECK(m.launches.unmatched == 1);
  CHECK(m.launches.negative == 1);  // 61 before 62
  CHECK(m.launches.start_minus_launch_end.max == us(24));
  CHECK(m.queues.at(7).max == 2);
  CHECK(m.queues.at(7).time_weighted_mean == doctest::Approx((4 * 1 + 6 * 2 + 20 * 1) / 30.0));
  REQUIRE(m.per_launching_step.size() == 3);
  CHECK(m.per_launching_step[0].times.busy == us(50));
  CHECK(m.per_launching_step[1].times.busy == us(9));
  CHECK(m.per_launching_step[2].step == "none");
  REQUIRE(m.per_cpu_step_window.size() == 2);
  CHECK(m.per_cpu_step_window[0].times.idle == us(20));
  CHECK(m.per_cpu_step_window[1].times.busy == us(25));
  CHECK(m.ops.at(0).name == "b");
  CHECK(m.ops.at(1).count == 2);
  CHECK(m.launched_only->device_ops == 3);
}

TEST_CASE("quantiles are values that occurred") {
  std::vector<Time> values;
  for (int i = 100; i > 0; --i) values.push_back(us(i));
  const Distribution d = distribution(values);
  CHECK(d.p50 == us(51));
  CHECK(d.p90 == us(91));
  CHECK(d.p99 == us(100));
  CHECK(d.sum == us(5050));
  CHECK(distribution({}).count == 0);
}

TEST_CASE("memory instants and stalls") {
  const auto memory = [](int ts, int bytes, int allocated, int reserved) {
    return fmt::format(R"({{"ph":"i","name":"[memory]","ts":{},"args":{{"Bytes":{},"Device Type":1,"Device Id":0,"Total Allocated":{},"Total Reserved":{}}}}})",
                       ts, bytes, allocated, reserved);
  };
  const Profile p = ProfileJson()
                        .raw(memory(1, 100, 300, 1000))
                        .raw(memory(2, 50, 350, 2000))
                        .raw(memory(3, -100, 250, 2000))
                        .call("cudaMalloc", 5, 7, 1)
                        .call("cudaLaunchKernel", 12, 1, 2)
                        .read();
  const HostMetrics m = host_metrics(p);
  const MemoryTotals& totals = m.memory.at("1:0");
  CHECK(totals.running_sum_peak == 150);
  CHECK(totals.net_bytes == 50);
  CHECK(totals.peak_allocated == 350);
  CHECK(totals.min_reserved == 1000);
  CHECK(totals.reserved_changes == 1);
  CHECK(m.stalls.size() == 1);
  CHECK(m.stalls.at("cudaMalloc").total == us(7));
}
