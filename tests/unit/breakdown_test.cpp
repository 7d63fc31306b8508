// A step drawn by hand, and identities that hold for any trace.
#include "trace/breakdown.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <string>

#include "tests/support/trace_builder.hpp"
#include "trace/intervals.hpp"

using namespace stepcast;
using namespace stepcast::trace;
using hw::CollectiveKind;
using stepcast::test::TraceBuilder;
using stepcast::test::us;

namespace {

// compute        forward [10,50) [60,100), backward [110,150), optimizer [180,200)
// unshard        all-gather [0,30) [45,58)
// post_backward  copy [120,125), reduce-scatter [140,175)
TraceBuilder one_step() {
  TraceBuilder b;
  b.phase(Phase::forward).collective(CollectiveKind::all_gather, 0, 30).kernel(10, 50).collective(CollectiveKind::all_gather, 45, 58).kernel(60, 100);
  b.phase(Phase::backward).kernel(120, 125, 3, 1).kernel(110, 150).collective(CollectiveKind::reduce_scatter, 140, 175, 3);
  b.phase(Phase::optimizer).kernel(180, 200);
  b.wait(HostState::data_loader, 0, 8).wait(HostState::synchronize, 90, 104);
  b.step_ends(150, 200);
  return b;
}

std::size_t index(Phase phase) { return static_cast<std::size_t>(phase); }

void check_identities(const Breakdown& out) {
  Times sum;
  for (const Times& phase : out.phases) {
    CHECK(phase.compute + phase.exposed + phase.idle == phase.span);
    CHECK(phase.exposed <= phase.collective);
    sum.span += phase.span;
    sum.compute += phase.compute;
    sum.collective += phase.collective;
    sum.exposed += phase.exposed;
    sum.idle += phase.idle;
    sum.host_blocked += phase.host_blocked;
    sum.data_wait += phase.data_wait;
  }
  const Times& total = out.total;
  CHECK(total.span == out.end - out.begin);
  CHECK(total.compute + total.exposed + total.idle == total.span);
  CHECK(total.exposed <= total.collective);
  CHECK(total.data_wait <= total.host_blocked);
  CHECK(sum.span == total.span);
  CHECK(sum.compute == total.compute);
  CHECK(sum.collective == total.collective);
  CHECK(sum.exposed == total.exposed);
  CHECK(sum.idle == total.idle);
  CHECK(sum.host_blocked == total.host_blocked);
  CHECK(sum.data_wait == total.data_wait);
  SimTime by_kind{}, gaps{}, causes{};
  for (const SimTime time : out.exposed_by_kind) by_kind += time;
  for (const Gap& gap : out.gaps) gaps += gap.end - gap.begin;
  for (const CauseTotal& cause : out.causes) causes += cause.total;
  CHECK(by_kind == total.exposed);
  CHECK(gaps == causes);
  for (std::size_t i = 0; i < out.gaps.size(); ++i) {
    CHECK(out.gaps[i].begin < out.gaps[i].end);
    if (i > 0) CHECK(out.gaps[i - 1].end <= out.gaps[i].begin);
  }
}

}  // namespace

TEST_CASE("the shares of a step drawn by hand") {
  auto b = one_step();
  const auto out = break_down(b.trace(), b.rank(), 0);
  check_identities(out);
  CHECK(out.total.span == us(200));
  CHECK(out.total.compute == us(40 + 40 + 40 + 20));  // the copy runs under the backward kernel
  CHECK(out.total.collective == us(30 + 13 + 35));
  CHECK(out.total.exposed == us(10 + 8 + 25));  // [0,10) [50,58) [150,175)
  CHECK(out.total.idle == us(2 + 10 + 5));      // [58,60) [100,110) [175,180)
  CHECK(out.total.host_blocked == us(8 + 14));
  CHECK(out.total.data_wait == us(8));
  CHECK(out.exposed_by_kind[0] == us(18));
  CHECK(out.exposed_by_kind[1] == us(25));
  REQUIRE(out.kernels.size() == 2);
  CHECK(out.kernels[0].name == "gemm");
  CHECK(out.kernels[0].count == 4);
  CHECK(out.kernels[0].total == us(140));
}

TEST_CASE("a phase reaches to its last device work: the last reduce-scatter is the backward's") {
  auto b = one_step();
  const auto out = break_down(b.trace(), b.rank(), 0);
  CHECK(out.phases[index(Phase::forward)].span == us(100));
  CHECK(out.phases[index(Phase::backward)].span == us(175 - 100));
  CHECK(out.phases[index(Phase::backward)].exposed == us(25));
  CHECK(out.phases[index(Phase::optimizer)].span == us(25));
  CHECK(out.phases[index(Phase::optimizer)].idle == us(5));
  CHECK(out.phases[index(Phase::none)].span == us(0));
}

TEST_CASE("with accumulation a phase is all of its stretches") {
  TraceBuilder b;
  b.phase(Phase::forward).kernel(0, 10).phase(Phase::backward).kernel(12, 30).phase(Phase::forward).kernel(31, 40);
  b.phase(Phase::backward).kernel(40, 60).phase(Phase::optimizer).kernel(65, 70).step_ends(70, 70);
  const auto out = break_down(b.trace(), b.rank(), 0);
  check_identities(out);
  CHECK(out.phases[index(Phase::forward)].span == us(10 + 10));
  CHECK(out.phases[index(Phase::backward)].span == us(20 + 20));
  CHECK(out.phases[index(Phase::optimizer)].span == us(10));
}

TEST_CASE("a step's window runs from the end of the optimizer before to its own; work across the border is cut") {
  TraceBuilder b;
  b.kernel(0, 100).collective(CollectiveKind::all_gather, 80, 130).step_ends(60, 100);
  b.kernel(150, 200).step_ends(120, 200).kernel(210, 300).step_ends(190, 300);
  const auto out = break_down(b.trace(), b.rank(), 1);
  check_identities(out);
  CHECK(out.begin == us(100));
  CHECK(out.end == us(200));
  CHECK(out.total.exposed == us(30));
  CHECK(out.total.idle == us(20));
  CHECK(out.total.compute == us(50));
}

TEST_CASE("time that two kinds leave exposed together counts once") {
  TraceBuilder b;
  b.kernel(0, 10).collective(CollectiveKind::all_gather, 10, 40).collective(CollectiveKind::all_reduce, 20, 50, 4).kernel(60, 70).step_ends(70, 70);
  const auto out = break_down(b.trace(), b.rank(), 0);
  check_identities(out);
  CHECK(out.exposed_by_kind[0] == us(30));
  CHECK(out.exposed_by_kind[2] == us(10));
}

TEST_CASE("a driver call that blocks the host counts as blocked; other driver calls do not") {
  TraceBuilder b;
  b.kernel(0, 100).launch(0, 10);
  b.trace().ranks[0].slices.back().host_state = HostState::device_malloc;
  b.launch(20, 25).step_ends(100, 100);
  CHECK(break_down(b.trace(), b.rank(), 0).total.host_blocked == us(10));
}

TEST_CASE("steps that were not recorded and entries that do not exist are refused") {
  auto b = one_step();
  CHECK_THROWS_AS(break_down(b.trace(), b.rank(), -1), std::out_of_range);
  CHECK_THROWS_AS(break_down(b.trace(), b.rank(), 1), std::out_of_range);
  b.trace().first_recorded_step = 1;
  CHECK_THROWS_AS(break_down(b.trace(), b.rank(), 0), std::out_of_range);
  b.trace().first_recorded_step = 0;
  b.trace().kernels.clear();
  CHECK_THROWS_AS(break_down(b.trace(), b.rank(), 0), std::out_of_range);
}

TEST_CASE("a step without device work is all idle") {
  TraceBuilder b;
  b.wait(HostState::data_loader, 0, 30).step_ends(50, 50);
  const auto out = break_down(b.trace(), b.rank(), 0);
  check_identities(out);
  CHECK(out.total.idle == us(50));
  CHECK(out.phases[0].span == us(50));
}

TEST_CASE("the mean of steps: times and counts divided by their number") {
  TraceBuilder b;
  b.phase(Phase::forward).collective(CollectiveKind::all_gather, 0, 30).kernel(30, 100).step_ends(50, 100);
  b.phase(Phase::forward).collective(CollectiveKind::all_gather, 100, 150).kernel(160, 240).step_ends(150, 240);
  const auto first = break_down(b.trace(), b.rank(), 0), second = break_down(b.trace(), b.rank(), 1), mean = mean_breakdown(b.trace(), b.rank(), 0, 2);
  CHECK(mean.begin == first.begin);
  CHECK(mean.end == second.end);
  CHECK(mean.total.span == us(120));
  CHECK(mean.total.compute == us(75));
  CHECK(mean.total.exposed == us(40));
  CHECK(mean.total.idle == us(5));
  CHECK(mean.phases[index(Phase::forward)].compute == us(75));
  CHECK(mean.exposed_by_kind[0] == us(40));
  CHECK(mean.gaps.size() == first.gaps.size() + second.gaps.size());
  REQUIRE(mean.kernels.size() == 1);
  CHECK(mean.kernels[0].total == us(75));
  CHECK(mean_breakdown(b.trace(), b.rank(), 1, 1).total.compute == second.total.compute);
}

TEST_CASE("every cause has a name of its own") {
  for (std::size_t i = 0; i < static_cast<std::size_t>(GapCause::count_); ++i) {
    for (std::size_t j = 0; j < i; ++j) CHECK(std::string(name(static_cast<GapCause>(i))) != name(static_cast<GapCause>(j)));
  }
}

TEST_CASE("the identities hold for 300 random traces of three steps, in any order of slices") {
  std::mt19937 random(11);
  const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  for (int round = 0; round < 300; ++round) {
    TraceBuilder b;
    double host = 0, last = 0, ends[4] = {};
    for (int step = 0; step < 3; ++step) {
      const int calls = pick(30);
      for (int i = 0; i < calls; ++i) {
        b.phase(static_cast<Phase>(pick(4)));
        if (pick(4) == 0) b.wait(static_cast<HostState>(1 + pick(7)), host, host + pick(20)), host += 20;
        if (pick(5) != 0) b.launch(host, host + pick(6));
        host += 6;
        const int lane = pick(4);
        const double begin = std::max(ends[lane], host + pick(12)), end = begin + pick(15);
        if (lane == 0 || pick(3) == 0) b.kernel(begin, end, static_cast<std::int16_t>(lane), static_cast<std::uint32_t>(pick(2)));
        else b.collective(static_cast<CollectiveKind>(pick(3)), begin, end, static_cast<std::int16_t>(lane));
        ends[lane] = end;
      }
      last = std::max(ends[0], last);
      b.step_ends(host, last);
    }
    const bool shuffled = round % 2 == 1;
    if (shuffled) std::shuffle(b.trace().ranks[0].slices.begin(), b.trace().ranks[0].slices.end(), random);
    for (int step = 0; step < 3; ++step) {
      const auto out = break_down(b.trace(), b.rank(), step);
      check_identities(out);
      Intervals busy;
      for (const auto& slice : b.rank().slices) {
        if (slice.lane == 0 && slice.category == Category::kernel) busy.push_back({std::max(slice.begin, out.begin), std::min(slice.end, out.end)});
      }
      const SimTime idle_of_lane = out.total.span - length(merge(busy));
      SimTime gaps{};
      for (const auto& gap : out.gaps) gaps += gap.end - gap.begin;
      REQUIRE(gaps == idle_of_lane);
    }
  }
}
