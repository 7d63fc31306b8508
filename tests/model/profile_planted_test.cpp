// Causes that were simulated must be diagnosed: scenarios in which one cause makes nearly all idle time, their traces written as a profiler's files and read back.
// At least 95 % of the gap time has the planted cause, and the finding that names it comes first. docs/diagnose.md, "How well it is checked".
#include <doctest/doctest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "support/forecast.hpp"
#include "trace/chrome_writer.hpp"
#include "trace/profile/findings.hpp"
#include "trace/profile/import.hpp"

namespace profile = stepcast::trace::profile;
using profile::Cause;

namespace {

struct Planted {
  std::vector<std::string> sets;
  std::vector<Cause> causes;  // any of them is right
  std::string finding;        // that comes first, or after one that includes it
  std::string includes = {};
};

profile::RankDiagnosis diagnosis_of(const std::vector<std::string>& sets) {
  std::stringstream file;
  stepcast::trace::write_chrome(stepcast::test::forecast("7b-32xa100", sets).result.trace, file);
  const std::string text = file.str();
  profile::MemorySource source(text);
  return profile::diagnose(profile::import_profile(source, "planted"));
}

double share_of(const profile::Gaps& gaps, const std::vector<Cause>& causes) {
  profile::Time sum{};
  for (const Cause cause : causes) sum += gaps.by_cause[static_cast<std::size_t>(cause)].total;
  return static_cast<double>(sum.count()) / static_cast<double>(gaps.total.count());
}

void check(const Planted& planted) {
  const profile::RankDiagnosis rank = diagnosis_of(planted.sets);
  REQUIRE(rank.devices.size() == 1);
  REQUIRE(rank.devices[0].gaps);
  const double share = share_of(*rank.devices[0].gaps, planted.causes);
  CHECK_MESSAGE(share >= 0.95, planted.finding << " with " << planted.sets.back() << ": " << share);
  const auto findings = profile::findings_of(rank);
  REQUIRE_MESSAGE(!findings.empty(), planted.finding);
  const std::size_t place = findings[0].name == planted.includes ? 1 : 0;
  REQUIRE(findings.size() > place);
  CHECK_MESSAGE(findings[place].name == planted.finding, planted.sets.back() << ": found " << findings[place].name);
}

/// One GPU alone: nothing to communicate.
std::vector<std::string> alone(std::vector<std::string> sets) {
  std::vector<std::string> all = {"/model/layers=2", "/cluster/nodes=1", "/cluster/gpus_per_node=1"};
  all.insert(all.end(), sets.begin(), sets.end());
  return all;
}

}  // namespace

TEST_CASE("planted: a loader that is too slow") {
  for (const char* time : {"900 ms", "3 s"}) {
    check({alone({"/loader/workers=0", std::string("/loader/batch_time=") + time}), {Cause::host_dataloader}, "starved_data_loader"});
    check({alone({"/loader/workers=1", std::string("/loader/batch_time=") + time}), {Cause::host_dataloader}, "starved_data_loader"});
  }
}

TEST_CASE("planted: an allocator at its limit") { check({alone({"/allocator/device_memory=24 GiB"}), {Cause::host_allocator_call}, "allocator_thrash"}); }

TEST_CASE("planted: a slow host") {
  for (const char* scale : {"15", "20", "40"}) {
    check({alone({"/batch/seq_len=128", std::string("/host/scale=") + scale}), {Cause::host_launch_bound, Cause::back_to_back_under_10us}, "launch_bound"});
  }
}

TEST_CASE("planted: a host that pauses") {
  check({alone({"/batch/seq_len=128", "/host/gc_period=310 ms", "/host/gc_pause=300 ms"}), {Cause::host_outside_torch_ops}, "host_paused_outside_torch"});
}

TEST_CASE("planted: copies that the host waits for") {
  check({alone({"/loader/sample_bytes=1 GiB", "/batch/seq_len=256", "/loader/pin_memory=false"}),
         {Cause::host_sync_on_memcpy, Cause::host_memcpy_call},
         "blocking_copies"});
  check({alone({"/loader/sample_bytes=1 GiB", "/batch/seq_len=256", "/loader/non_blocking=false"}),
         {Cause::host_sync_on_memcpy, Cause::host_memcpy_call},
         "blocking_copies"});
}

TEST_CASE("planted: all-gathers that nothing prefetches, on slow links") {
  for (const char* tokens : {"128", "512"}) {
    check({{"/model/layers=6", std::string("/batch/seq_len=") + tokens, "/policy/backward_prefetch=NONE", "/cluster/nodes=4"},
           {Cause::device_wait_comm, Cause::host_sync_on_comm},
           "serialised_all_gathers",
           "exposed_communication"});
  }
}

TEST_CASE("the forecast gain of a planted cause is what the simulator gains without it") {
  struct Pair {
    std::vector<std::string> with, without;
    std::string finding;
  };
  const std::vector<Pair> pairs = {
      {alone({"/loader/workers=0", "/loader/batch_time=900 ms"}), alone({}), "starved_data_loader"},
      {alone({"/loader/workers=1", "/loader/batch_time=2 s"}), alone({}), "starved_data_loader"},
      {alone({"/batch/seq_len=128", "/host/gc_period=310 ms", "/host/gc_pause=300 ms"}), alone({"/batch/seq_len=128"}), "host_paused_outside_torch"},
      {alone({"/allocator/device_memory=24 GiB"}), alone({"/allocator/device_memory=60 GiB"}), "allocator_thrash"}};
  for (const Pair& pair : pairs) {
    const profile::RankDiagnosis slow = diagnosis_of(pair.with), fast = diagnosis_of(pair.without);
    const auto length = [](const profile::RankDiagnosis& rank) { return profile::microseconds(rank.devices.at(0).whole_window.span); };
    const double gained = 1 - length(fast) / length(slow);
    const auto findings = profile::findings_of(slow);
    REQUIRE(!findings.empty());
    REQUIRE(findings[0].name == pair.finding);
    REQUIRE(findings[0].forecast);
    MESSAGE(pair.finding << ": forecast " << *findings[0].forecast << ", simulated " << gained << ", bound " << findings[0].upper_bound);
    CHECK(std::fabs(*findings[0].forecast - gained) < 0.02);
  }
}
