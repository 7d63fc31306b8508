// Which rank is which does not matter, and explicit ranks with nothing to tell them apart are the folded one.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "tests/support/forecast.hpp"

using namespace stepcast;
using test::forecast;

namespace {

const std::vector<std::string> kSmall = {"/model/layers=3", "/batch/seq_len=1024", "/run/ranks=explicit", "/run/steps=4"};

cli::Prediction with(std::vector<std::string> more) {
  more.insert(more.begin(), kSmall.begin(), kSmall.end());
  return forecast("7b-32xa100", more);
}

std::string slow(int rank) {
  return "/run/slow_ranks=[{\"rank\": " + std::to_string(rank) + ", \"compute_scale\": 1.3, \"host_scale\": 1.2, \"nic_scale\": 1.1}]";
}

}  // namespace

TEST_CASE("whichever rank is slow, the steps are the same, and it is found") {
  for (const char* framework : {"/policy/framework=fsdp1", "/policy/framework=fsdp2", "/policy/framework=ddp"}) {
    const auto first = with({framework, slow(0)});
    for (const int rank : {5, 31}) {
      CAPTURE(rank);
      const auto other = with({framework, slow(rank)});
      CHECK(other.result.step_end == first.result.step_end);
      REQUIRE(other.report.rank_waits.size() == 32);
      CHECK(cli::straggler(other.report) == rank);
      CHECK(other.report.rank_waits[static_cast<std::size_t>(rank)].collective_wait_s == 0);
      CHECK(other.report.rank_waits[1].collective_wait_s > 0);
    }
    CHECK(first.report.step_time_s > with({framework}).report.step_time_s);
  }
}

TEST_CASE("how many ranks are traced changes nothing else; alike ranks have alike traces, and launches have numbers of their own") {
  const auto plain = with({"/run/traced_ranks=1"}), all = with({"/run/traced_ranks=32"});
  REQUIRE(plain.result.trace.ranks.size() == 1);
  REQUIRE(all.result.trace.ranks.size() == 32);
  CHECK(with({}).result.trace.ranks.size() == 8);
  CHECK(all.result.step_end == plain.result.step_end);
  CHECK(all.result.peak_reserved == plain.result.peak_reserved);
  CHECK(all.result.retries_per_step == plain.result.retries_per_step);
  std::set<std::uint32_t> numbers;
  std::size_t launches = 0;
  for (const trace::RankTrace& rank : all.result.trace.ranks) {
    const auto& first = plain.result.trace.ranks[0];
    REQUIRE(rank.slices.size() == first.slices.size());
    CHECK(rank.memory.size() == first.memory.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < first.slices.size(); ++i) {
      const trace::Slice &a = first.slices[i], &b = rank.slices[i];
      different += a.begin != b.begin || a.end != b.end || all.result.trace.names[b.name] != plain.result.trace.names[a.name];
      if (b.category != trace::Category::host_runtime) continue;
      numbers.insert(b.correlation);
      ++launches;
    }
    CHECK(different == 0);
  }
  CHECK(numbers.size() == launches);
}

TEST_CASE("slow ranks of scale 1 change nothing, nor does a seed where nothing is drawn") {
  const auto plain = with({});
  CHECK(with({"/run/slow_ranks=[{\"rank\": 3}]"}).result.step_end == plain.result.step_end);
  CHECK(with({"/run/seed=7"}).result.step_end == plain.result.step_end);
  CHECK(cli::straggler(plain.report) == -1);
}

TEST_CASE("with jitter the step time is the mean over the measured steps, and the parts add up to it") {
  const auto p = with({"/run/jitter={\"kernel\": 0.05, \"host\": 0.1, \"rank_speed\": 0.02}"});
  const auto& r = p.report;
  const auto& times = r.step_times_s;
  CHECK(r.measured_steps == 2);
  CHECK(r.step_time_s == doctest::Approx((times[2] + times[3]) / 2));
  CHECK(times[2] != times[3]);
  CHECK(r.compute_s + r.exposed_comm_s + r.idle_s == doctest::Approx(r.step_time_s).epsilon(1e-9));
  CHECK(r.step_time_percentiles_s.p10 <= r.step_time_percentiles_s.p50);
  CHECK(r.step_time_percentiles_s.p50 <= r.step_time_percentiles_s.p90);
  double phases = 0;
  for (const auto& phase : r.phases) phases += phase.span_s;
  CHECK(phases == doctest::Approx(r.step_time_s).epsilon(1e-9));
}
