// One planted cause per test: what ended the gap is known, so the pieces can be summed by hand. The launch latency of these traces is 5 us:
// each begins with a kernel that starts 5 us after its launch on an idle stream.
#include <doctest/doctest.h>

#include "tests/support/trace_builder.hpp"
#include "trace/breakdown.hpp"

using namespace stepcast;
using namespace stepcast::trace;
using hw::CollectiveKind;
using stepcast::test::TraceBuilder;
using stepcast::test::us;

namespace {

/// Host launches at [0, 10), the first kernel runs [15, 115): the leading gap [0, 15) is launch bound.
TraceBuilder started() {
  TraceBuilder builder;
  builder.launch(0, 10).kernel(15, 115);
  return builder;
}

SimTime total(const Breakdown& breakdown, GapCause cause) { return breakdown.causes[static_cast<std::size_t>(cause)].total; }

/// Breaks the one step down and checks that its gaps are the idle time of the compute stream.
Breakdown explain(TraceBuilder& builder, double end) {
  builder.step_ends(end, end);
  auto out = break_down(builder.trace(), builder.rank(), 0);
  SimTime busy{}, gaps{};
  for (const auto& slice : builder.rank().slices) {
    if (slice.category == Category::kernel && slice.lane == 0) busy += slice.end - slice.begin;
  }
  for (const auto& gap : out.gaps) gaps += gap.end - gap.begin;
  CHECK(gaps == out.total.span - busy);
  CHECK(total(out, GapCause::unexplained) == us(0));
  return out;
}

}  // namespace

TEST_CASE("a kernel that was launched in time and starts when an all-gather ends waited for it") {
  auto builder = started();
  builder.launch(10, 20).collective(CollectiveKind::all_gather, 25, 300);
  builder.launch(20, 30).kernel(300, 400);
  const auto out = explain(builder, 400);
  REQUIRE(out.gaps.size() == 2);
  CHECK(out.gaps[0].cause == GapCause::launch_bound);
  CHECK(out.gaps[1].cause == GapCause::all_gather);
  CHECK(out.gaps[1].begin == us(115));
  CHECK(out.gaps[1].end == us(300));
  CHECK(out.gaps[1].before == "gemm");
}

TEST_CASE("a gap behind two collectives in one FIFO is cut where the first ended") {
  auto builder = started();
  builder.launch(10, 20).collective(CollectiveKind::reduce_scatter, 25, 200);
  builder.launch(20, 30).collective(CollectiveKind::all_gather, 200, 300);
  builder.launch(30, 40).kernel(300, 400);
  const auto out = explain(builder, 400);
  CHECK(total(out, GapCause::reduce_scatter) == us(200 - 115));
  CHECK(total(out, GapCause::all_gather) == us(100));
}

TEST_CASE("an all-reduce and a kernel of another stream are named") {
  auto builder = started();
  builder.launch(10, 20).kernel(115, 130, 3, 1);
  builder.launch(20, 30).collective(CollectiveKind::all_reduce, 130, 160);
  builder.launch(30, 40).kernel(160, 200);
  const auto out = explain(builder, 200);
  CHECK(total(out, GapCause::other_stream) == us(15));
  CHECK(total(out, GapCause::all_reduce) == us(30));
}

TEST_CASE("an all-gather that the host issued late is the host's fault until it starts") {
  auto builder = started();
  builder.launch(150, 160).collective(CollectiveKind::all_gather, 165, 265);
  builder.launch(160, 170).kernel(265, 300);
  const auto out = explain(builder, 300);
  CHECK(total(out, GapCause::launch_bound) == us(15 + (165 - 115)));  // the leading gap and that before the all-gather
  CHECK(total(out, GapCause::all_gather) == us(100));
}

TEST_CASE("gaps shorter than the launch latency are launch bound where the host is the slower of the two") {
  // Host: 10 us a kernel; device: 8 us a kernel; so 2 us of each period are idle for want of launches.
  TraceBuilder builder;
  for (int i = 0; i < 10; ++i) builder.launch(10.0 * i, 10.0 * (i + 1)).kernel(10.0 * (i + 1) + 5, 10.0 * (i + 1) + 13);
  const auto out = explain(builder, 113);
  CHECK(total(out, GapCause::launch_bound) == us(15 + 9 * 2));
  CHECK(out.causes[static_cast<std::size_t>(GapCause::launch_bound)].count == 10);
}

TEST_CASE("a launched kernel that waited for nothing on record had a short dispatch gap") {
  auto builder = started();
  builder.launch(10, 20).kernel(117, 200);
  const auto out = explain(builder, 200);
  CHECK(total(out, GapCause::launch_latency) == us(2));
}

TEST_CASE("what blocked the host is named, and the launches around it are launch bound") {
  struct Case {
    HostState state;
    GapCause cause;
  };
  for (const auto& [state, cause] : {Case{HostState::device_malloc, GapCause::device_malloc}, Case{HostState::allocator_flush, GapCause::allocator_flush},
                                     Case{HostState::data_loader, GapCause::data_loader}, Case{HostState::synchronize, GapCause::synchronize},
                                     Case{HostState::rate_limiter, GapCause::rate_limiter}, Case{HostState::launch_queue_full, GapCause::launch_queue}}) {
    CAPTURE(static_cast<int>(state));
    auto builder = started();
    builder.wait(state, 20, 180).launch(180, 190).kernel(195, 300);  // gap [115, 195): blocked until 180 (+5 on its way), then 10 us of launch
    const auto out = explain(builder, 300);
    CHECK(total(out, cause) == us(185 - 115));
    CHECK(total(out, GapCause::launch_bound) == us(15 + 10));
  }
}

TEST_CASE("two blocks in one gap are told apart") {
  auto builder = started();
  builder.wait(HostState::data_loader, 100, 150).wait(HostState::device_malloc, 160, 200).launch(200, 210).kernel(215, 300);
  const auto out = explain(builder, 300);
  CHECK(total(out, GapCause::data_loader) == us(155 - 115));
  CHECK(total(out, GapCause::device_malloc) == us(40));
  CHECK(total(out, GapCause::launch_bound) == us(15 + 10 + 10));
}

TEST_CASE("a host that sat in the rate limiter until a collective ended waited for the collective") {
  auto builder = started();
  builder.launch(10, 20).collective(CollectiveKind::all_gather, 25, 300);
  builder.wait(HostState::rate_limiter, 30, 300).launch(300, 310).kernel(315, 400);
  const auto out = explain(builder, 400);
  CHECK(total(out, GapCause::rate_limiter) == us(0));
  CHECK(total(out, GapCause::all_gather) == us(305 - 115));
  CHECK(total(out, GapCause::launch_bound) == us(15 + 10));
}

TEST_CASE("a collective that ended long before the limiter let go is not blamed") {
  auto builder = started();
  builder.launch(10, 20).collective(CollectiveKind::all_gather, 25, 150);
  builder.wait(HostState::rate_limiter, 30, 300).launch(300, 310).kernel(315, 400);
  const auto out = explain(builder, 400);
  CHECK(total(out, GapCause::rate_limiter) == us(305 - 115));
  CHECK(total(out, GapCause::all_gather) == us(0));
}

TEST_CASE("an allocator flush is blamed although it waits for the device") {
  auto builder = started();
  builder.launch(10, 20).collective(CollectiveKind::all_gather, 25, 300);
  builder.wait(HostState::allocator_flush, 30, 300).launch(300, 310).kernel(315, 400);
  const auto out = explain(builder, 400);
  CHECK(total(out, GapCause::allocator_flush) == us(305 - 115));
}

TEST_CASE("without host slices a gap with no device work beside it stays unexplained, and long ones are never dispatch time") {
  TraceBuilder builder;
  builder.kernel(0, 100).kernel(150, 200).step_ends(200, 200);
  const auto out = break_down(builder.trace(), builder.rank(), 0);
  CHECK(total(out, GapCause::unexplained) == us(50));
}

TEST_CASE("a kernel that starts just before other work ends waited for the device that the work held") {
  auto builder = started();
  builder.launch(10, 20).collective(CollectiveKind::all_gather, 25, 1000);  // runs all the time and on
  builder.launch(20, 30).kernel(110, 304, 3, 1);
  builder.launch(30, 40).kernel(300, 400);
  const auto out = explain(builder, 400);
  CHECK(total(out, GapCause::other_stream) == us(300 - 115));
}

TEST_CASE("work that began only in the second half of a gap is not blamed for all of it") {
  TraceBuilder builder;
  builder.kernel(0, 100).kernel(180, 304, 3, 1).kernel(200, 400).step_ends(400, 400);
  const auto out = break_down(builder.trace(), builder.rank(), 0);
  CHECK(total(out, GapCause::unexplained) == us(100));
}

TEST_CASE("device work without length does not stop the walk") {
  auto builder = started();
  for (int i = 0; i < 3; ++i) builder.kernel(150, 150, 3, 1);
  builder.launch(20, 30).kernel(150, 200).step_ends(200, 200);
  const auto out = break_down(builder.trace(), builder.rank(), 0);
  CHECK(total(out, GapCause::unexplained) == us(150 - 115));  // nothing says why those three came so late
}
