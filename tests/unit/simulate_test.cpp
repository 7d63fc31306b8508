// The executor's rules one by one, on programs small enough to work out by hand (times in ns).
#include "sim/simulate.hpp"

#include <doctest/doctest.h>

#include "tests/support/hand_program.hpp"

using namespace stepcast;
using program::OpKind;
using program::Stream;
using test::end_ns, test::HandProgram;

TEST_CASE("the host runs ahead of a busy stream: kernels follow each other") {
  HandProgram p;
  p.host_costs(10, 0);
  const auto k = p.kernel(100);
  p.add(OpKind::launch, k).add(OpKind::launch, k).add(OpKind::launch, k).end_step();
  CHECK(end_ns(p.run()) == 10 + 3 * 100);  // the first launch, then three kernels without a gap
}

TEST_CASE("a launch-bound stream waits for the host") {
  HandProgram p;
  p.host_costs(100, 0);
  const auto k = p.kernel(10);
  p.add(OpKind::launch, k).add(OpKind::launch, k).add(OpKind::launch, k).end_step();
  CHECK(end_ns(p.run()) == 3 * 100 + 10);
}

TEST_CASE("launch latency delays the first kernel of an idle stream only") {
  HandProgram p;
  p.host_costs(10, 0);
  const auto k = p.kernel(100);
  p.prices.launch_latency = HandProgram::ns(7);
  p.add(OpKind::launch, k).add(OpKind::launch, k).end_step();
  CHECK(end_ns(p.run()) == 10 + 7 + 200);
}

TEST_CASE("a stream waits for the record that the host had made before the wait, not for later ones") {
  HandProgram p;
  const auto k = p.kernel(100), longer = p.kernel(1000);
  const auto e = p.event();
  p.add(OpKind::launch, k, Stream::unshard).add(OpKind::record, e, Stream::unshard);
  p.add(OpKind::wait, e, Stream::compute);
  p.add(OpKind::launch, longer, Stream::unshard).add(OpKind::record, e, Stream::unshard);
  p.add(OpKind::launch, k, Stream::compute).end_step();
  CHECK(end_ns(p.run()) == 200);
}

TEST_CASE("a wait for an event that was never recorded does not block") {
  HandProgram p;
  const auto k = p.kernel(5);
  p.add(OpKind::wait, p.event()).add(OpKind::launch, k).end_step();
  CHECK(end_ns(p.run()) == 5);
}

TEST_CASE("host_wait blocks the host, not the streams") {
  HandProgram p;
  p.host_costs(10, 0);
  const auto k = p.kernel(100);
  const auto e = p.event();
  p.add(OpKind::launch, k).add(OpKind::record, e).add(OpKind::launch, k, Stream::unshard).add(OpKind::host_wait, e).add(OpKind::launch, k).end_step();
  // launch at 10, kernel 10..110; the host waits until 110, launches at 120, kernel 120..220
  CHECK(end_ns(p.run()) == 220);
}

TEST_CASE("one communicator is one FIFO in issue order, even from two streams") {
  HandProgram p;
  const auto ag = p.collective(50, 1), rs = p.collective(70, 1);
  const auto k = p.kernel(100);
  const auto e = p.event(), gathered = p.event();
  // the reduce-scatter is issued first and waits for a kernel; the all-gather behind it, ready at once, must wait for both
  p.add(OpKind::launch, k).add(OpKind::record, e).add(OpKind::wait, e, Stream::post_backward).add(OpKind::collective, rs, Stream::post_backward);
  p.add(OpKind::collective, ag, Stream::unshard).add(OpKind::record, gathered, Stream::unshard).add(OpKind::wait, gathered);
  p.add(OpKind::launch, k).end_step();
  CHECK(end_ns(p.run()) == 100 + 70 + 50 + 100);
}

TEST_CASE("different communicators run side by side and share the links that they both need") {
  HandProgram p;
  const auto a = p.collective(100, 1), b = p.collective(100, 1, program::Communicator::replica);
  const auto k = p.kernel(1);
  const auto e = p.event(), f = p.event();
  p.add(OpKind::collective, a, Stream::unshard).add(OpKind::collective, b, Stream::all_reduce);
  p.add(OpKind::record, e, Stream::unshard)
      .add(OpKind::record, f, Stream::all_reduce)
      .add(OpKind::wait, e)
      .add(OpKind::wait, f)
      .add(OpKind::launch, k)
      .end_step();
  SUBCASE("both need all of the NVLink: each at half speed") { CHECK(end_ns(p.run()) == 200 + 1); }
  SUBCASE("one needs the NIC instead: full speed") {
    p.prices.collectives[b] = {HandProgram::ns(100), 0, 1};
    CHECK(end_ns(p.run()) == 100 + 1);
  }
}

TEST_CASE("a collective slows the kernel beside it by the kernel's own ratio") {
  HandProgram p;
  const auto ag = p.collective(500, 1);
  const auto k = p.kernel(1000, 0.25);
  p.add(OpKind::collective, ag, Stream::unshard).add(OpKind::launch, k).end_step();
  // 500 ns beside the collective do 400 ns of work, then 600 ns alone
  CHECK(end_ns(p.run()) == 1100);
}

TEST_CASE("two kernels that each need all of the DRAM take twice as long together") {
  HandProgram p;
  const auto k = p.kernel(100, 0, 1);
  p.add(OpKind::launch, k, Stream::post_backward).add(OpKind::launch, k).end_step();
  CHECK(end_ns(p.run()) == 200);
}

TEST_CASE("two kernels that each fill the multiprocessors take as long as one after the other") {
  HandProgram p;
  const auto k = p.kernel(100);
  p.prices.kernels[k].processor_share = 1;
  p.add(OpKind::launch, k, Stream::post_backward).add(OpKind::launch, k).end_step();
  CHECK(end_ns(p.run()) == 200);
}

TEST_CASE("a full launch queue blocks the host") {
  HandProgram p;
  p.host_costs(1, 0);
  const auto k = p.kernel(100);
  for (int i = 0; i < 5; ++i) p.add(OpKind::launch, k);
  p.end_step();
  sim::Options options;
  options.launch_queue_depth = 2;
  const auto result = p.run(options);
  CHECK(end_ns(result) == 1 + 500);
  bool blocked = false;
  for (const auto& slice : result.trace.ranks[0].slices) blocked |= slice.host_state == trace::HostState::launch_queue_full;
  CHECK(blocked);
}

TEST_CASE("one hardware queue: an all-gather that waits behind a reduce-scatter holds up the kernels behind it") {
  HandProgram p;
  const auto reduce_scatter = p.collective(50, 1), all_gather = p.collective(50, 1);
  const auto k = p.kernel(100);
  const auto e = p.event();
  p.add(OpKind::launch, k).add(OpKind::record, e).add(OpKind::wait, e, Stream::post_backward).add(OpKind::collective, reduce_scatter, Stream::post_backward);
  p.add(OpKind::collective, all_gather, Stream::unshard).add(OpKind::launch, k).end_step();
  CHECK(end_ns(p.run()) == 100 + 100);  // both collectives beside the second kernel
  sim::Options options;
  options.one_queue = true;
  CHECK(end_ns(p.run(options)) == 100 + 50 + 100);  // the all-gather beside it alone
}

TEST_CASE("explicit ranks: a collective starts when the last rank arrives, and alike ranks equal the folded one to the picosecond") {
  HandProgram p;
  p.host_costs(3, 5);
  const auto ag = p.collective(997, 4);
  const auto k = p.kernel(1009, 0.17, 0.6), small = p.kernel(331, 0.25, 0.9);
  const auto e = p.event();
  for (int step = 0; step < 3; ++step) {
    for (int layer = 0; layer < 5; ++layer)
      p.add(OpKind::collective, ag, Stream::unshard)
          .add(OpKind::launch, small, Stream::post_backward)
          .add(OpKind::record, e, Stream::unshard)
          .add(OpKind::wait, e)
          .add(OpKind::launch, k)
          .add(OpKind::launch, small);
    p.end_step();
  }
  const auto folded = p.run();
  sim::Options options;
  options.ranks = 4;
  const auto all = p.run(options);
  REQUIRE(all.outcome == sim::Outcome::ok);
  CHECK(folded.step_end == all.step_end);
}

TEST_CASE("out of memory is a result that names the buffer") {
  HandProgram p;
  const auto big = p.buffer(60 << 20), more = p.buffer(50 << 20);
  p.add(OpKind::alloc, big).add(OpKind::alloc, more).end_step();
  sim::Options options;
  options.pool_bytes = 100 << 20;
  const auto result = p.run(options);
  CHECK(result.outcome == sim::Outcome::out_of_memory);
  CHECK(result.out_of_memory.buffer == "buffer1");
  CHECK(result.out_of_memory.limit == 100 << 20);
}

TEST_CASE("a flush drains the device first, then costs its time") {
  HandProgram p;
  const auto a = p.buffer(60 << 20), b = p.buffer(80 << 20);
  const auto k = p.kernel(100000);
  p.prices.flush = HandProgram::ns(5000);
  // a is freed while a kernel of another stream still uses it; b does not fit beside it
  p.add(OpKind::alloc, a).add(OpKind::launch, k, Stream::post_backward).add(OpKind::record_stream, a, Stream::post_backward).add(OpKind::free, a);
  p.add(OpKind::alloc, b).add(OpKind::launch, k).end_step();
  sim::Options options;
  options.pool_bytes = 100 << 20;
  const auto result = p.run(options);
  REQUIRE(result.outcome == sim::Outcome::ok);
  CHECK(result.memory.retries == 1);
  CHECK(end_ns(result) == 100000 + 5000 + 100000);
}

TEST_CASE("ranks that issue collectives in different orders deadlock, and the result says who waits for what") {
  HandProgram p;
  const auto a = p.collective(10, 2), b = p.collective(10, 2);
  p.add(OpKind::collective, a, Stream::unshard).add(OpKind::collective, b, Stream::unshard).end_step();
  program::Program swapped = p.program;
  std::swap(swapped.ops[0], swapped.ops[1]);
  const program::Program* const programs[] = {&p.program, &swapped};
  sim::Options options;
  options.ranks = 2;
  options.memory_limit = false;
  const auto result = sim::simulate(programs, p.prices, options);
  CHECK(result.outcome == sim::Outcome::deadlock);
  REQUIRE(result.deadlock.size() == 2);
  CHECK(result.deadlock[0] == "rank 0: stream unshard waits in all_gather for the other ranks");
  CHECK(result.deadlock[1] == "rank 1: stream unshard waits in all_gather for the other ranks");
}

TEST_CASE("two engines live side by side and agree with themselves") {
  HandProgram p;
  p.host_costs(10, 10);
  const auto k = p.kernel(100);
  p.add(OpKind::launch, k).add(OpKind::launch, k).end_step();
  const auto first = p.run(), second = p.run();
  CHECK(first.step_end == second.step_end);
  CHECK(first.events == second.events);
}

TEST_CASE("kernels and collectives that are threads of the same processors slow each other, and only while both run") {
  HandProgram p;
  const auto gather = p.collective(100, 2);
  const auto k = p.kernel(300), last = p.kernel(10);
  const auto e = p.event();
  p.prices.kernels[k].processor_share = p.prices.kernels[last].processor_share = 1;
  p.prices.collectives[gather].processor_share = 1;
  p.add(OpKind::collective, gather, Stream::unshard).add(OpKind::record, e, Stream::unshard).add(OpKind::launch, k);
  p.add(OpKind::wait, e).add(OpKind::launch, last).end_step();
  // both at half speed until the gather ends at 200; 100 of the kernel are done then, the other 200 take until 400
  sim::Options two;
  two.ranks = 2;
  CHECK(end_ns(p.run()) == 410);
  CHECK(end_ns(p.run(two)) == 410);
}

TEST_CASE("threads that have a processor each don't slow each other") {
  HandProgram p;
  const auto gather = p.collective(100, 2);
  const auto k = p.kernel(300);
  p.prices.kernels[k].processor_share = p.prices.collectives[gather].processor_share = 0.5;
  p.add(OpKind::collective, gather, Stream::unshard).add(OpKind::launch, k).end_step();
  CHECK(end_ns(p.run()) == 300);
}
