// Ranks and steps that differ, on programs small enough to work out by hand (times in ns). Definitions: sim/variation.hpp.
#include "sim/variation.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/hand_program.hpp"

using namespace stepcast;
using program::OpKind;
using program::Stream;
using test::end_ns, test::HandProgram;

namespace {

/// Each step: a kernel of 1000, a collective of 100 that waits for it, and a kernel of 10 behind that. Host calls take nothing.
HandProgram steps(int count, std::int32_t ranks) {
  HandProgram p;
  const auto k = p.kernel(1000), tail = p.kernel(10);
  const auto reduce = p.collective(100, ranks);
  const auto e = p.event(), f = p.event();
  for (int step = 0; step < count; ++step) {
    p.add(OpKind::launch, k).add(OpKind::record, e).add(OpKind::wait, e, Stream::post_backward).add(OpKind::collective, reduce, Stream::post_backward);
    p.add(OpKind::record, f, Stream::post_backward).add(OpKind::wait, f).add(OpKind::launch, tail).end_step();
  }
  return p;
}

sim::Options options(std::int32_t ranks) {
  sim::Options o;
  o.ranks = ranks;
  return o;
}

}  // namespace

TEST_CASE("the step follows the slowest rank, and all others wait for it") {
  sim::Options o = options(4);
  o.variation.slow_ranks = {{2, 1.5, 1, 1}};
  const auto result = steps(1, 4).run(o);
  CHECK(end_ns(result) == 1500 + 100 + 15);
  REQUIRE(result.waits.size() == 4);
  for (const std::size_t rank : {0u, 1u, 3u}) {
    CHECK(result.waits[rank].waited == HandProgram::ns(500));
    CHECK(result.waits[rank].last == 0);
  }
  CHECK(result.waits[2].waited == SimTime{});
  CHECK(result.waits[2].last == 1);
  CHECK(result.waits[2].joined == 1);
}

TEST_CASE("equal ranks wait for nobody") {
  const auto result = steps(2, 4).run(options(4));
  for (const sim::Waits& waits : result.waits) CHECK(waits.joined == 0);
}

TEST_CASE("a slow host delays what it launches; a slow adapter stretches collectives over the network only") {
  HandProgram p = steps(1, 2);
  p.host_costs(50, 0);
  sim::Options o = options(2);
  o.variation.slow_ranks = {{1, 1, 3, 1}};
  CHECK(end_ns(p.run(o)) == 150 + 1000 + 100 + 10);
  o.variation.slow_ranks = {{1, 1, 1, 2}};
  CHECK(end_ns(p.run(o)) == 50 + 1000 + 100 + 10);
  for (auto& collective : p.prices.collectives) collective.nic_share = 1;
  CHECK(end_ns(p.run(o)) == 50 + 1000 + 200 + 10);
}

TEST_CASE("pauses: every period, at a phase of each rank's own, or all together") {
  HandProgram p;
  p.host_costs(10, 0);
  const auto k = p.kernel(1);
  for (int i = 0; i < 1000; ++i) p.add(OpKind::launch, k);
  p.end_step();
  sim::Options o = options(1);
  o.variation.pauses[0] = {HandProgram::ns(1000), HandProgram::ns(300), sim::Pauses::Kind::regular};
  // 10,000 ns of work and n pauses of 300: n = total / 1000, so total = 10,000 / 0.7 = 14,286
  CHECK(end_ns(p.run(o)) == doctest::Approx(14286).epsilon(0.03));
  const sim::Variation regular(o.variation);
  CHECK(regular.of_rank(0).next_pause[0] != regular.of_rank(1).next_pause[0]);
  o.variation.pauses[0].kind = sim::Pauses::Kind::together;
  const sim::Variation together(o.variation);
  CHECK(together.of_rank(0).next_pause[0] == together.of_rank(1).next_pause[0]);
  o.variation.pauses[0].kind = sim::Pauses::Kind::random;
  CHECK(end_ns(p.run(o)) == doctest::Approx(14286).epsilon(0.15));
}

TEST_CASE("a pause is one wait of the host in the trace") {
  HandProgram p;
  p.host_costs(10, 0);
  const auto k = p.kernel(1);
  for (int i = 0; i < 100; ++i) p.add(OpKind::launch, k);
  p.end_step();
  sim::Options o = options(1);
  o.variation.pauses[0] = {HandProgram::ns(600), HandProgram::ns(50), sim::Pauses::Kind::regular};
  SimTime paused{};
  const auto result = p.run(o);
  for (const auto& slice : result.trace.ranks[0].slices)
    if (slice.host_state == trace::HostState::paused) paused += slice.end - slice.begin;
  CHECK(paused >= HandProgram::ns(50));
  CHECK(end_ns(result) == 1000 + paused.count() / 1000 + 1);
}

TEST_CASE("the same seed gives the same run, another seed another one, and noise costs time because the slowest rank counts") {
  const HandProgram p = steps(200, 8);
  sim::Options o = options(8);
  const std::int64_t quiet = end_ns(p.run(o));
  o.variation.kernel = 0.1;
  const std::int64_t noisy = end_ns(p.run(o));
  CHECK(end_ns(p.run(o)) == noisy);
  // E[max of 8 normal deviates] = 1.42: the kernel of 1000 becomes about 1000 exp(0.142 - 0.005) = 1147
  CHECK(static_cast<double>(noisy) / static_cast<double>(quiet) == doctest::Approx((1147.0 + 110) / 1110).epsilon(0.01));
  o.variation.seed = 1;
  CHECK(end_ns(p.run(o)) != noisy);
}

TEST_CASE("the draws of a rank don't depend on who else is there") {
  sim::Options few = options(2), many = options(8);
  few.variation.kernel = many.variation.kernel = 0.3;
  // one kernel and nothing to wait for: rank 0 ends at its own time
  HandProgram p;
  p.add(OpKind::launch, p.kernel(1000)).end_step();
  const auto end_of_first = [&](const sim::Options& o) {
    const auto result = p.run(o);
    return result.trace.ranks[0].slices.back().end;
  };
  CHECK(end_of_first(few) == end_of_first(many));
  CHECK(end_of_first(few) != HandProgram::ns(1000));
}

TEST_CASE("speeds of ranks are constant over the run; noise of collectives too is drawn") {
  sim::Options o = options(8);
  o.variation.rank_speed = 0.1;
  const auto result = steps(3, 8).run(o);
  const auto step = [&](std::size_t i) { return result.step_end[i] - result.step_end[i - 1]; };
  CHECK(step(1) == step(2));
  CHECK(step(1) > HandProgram::ns(1110));
  o = options(8);
  o.variation.collective = 0.3;
  const auto noisy = steps(3, 8).run(o);
  CHECK(noisy.step_end[2] - noisy.step_end[1] != noisy.step_end[1] - noisy.step_end[0]);
}
