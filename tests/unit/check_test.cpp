// The checker on hand-built programs: clean ones stay clean, each planted fault is found once and named. Rules: docs/check.md.
#include "program/check.hpp"

#include <doctest/doctest.h>

#include <chrono>

#include "tests/support/small_program.hpp"

using namespace stepcast;
using namespace stepcast::program;
using test::SmallProgram;

namespace {

constexpr Stream kCompute = Stream::compute, kUnshard = Stream::unshard, kPost = Stream::post_backward;

/// One FSDP-like unit: gather on the unshard stream, compute on the compute stream, reduce on the post-backward stream. Each flag leaves one thing out.
struct Faults {
  bool no_wait_for_gather = false, no_record_stream = false, no_wait_for_reduce = false, early_free = false, double_free = false, no_free = false,
       no_record = false;
};

SmallProgram unit(const Faults& faults = {}, int units = 3) {
  SmallProgram p;
  p.alloc("shard", kCompute).end_setup();
  for (int u = 0; u < units; ++u) {
    const std::string n = std::to_string(u);
    p.unit_begin("forward b" + n);
    if (u == 0) p.sync(kCompute, kUnshard, "optimizer done");
    p.alloc("full" + n, kUnshard).gather(kUnshard, {{"shard", Access::read}, {"full" + n, Access::write}});
    if (!faults.no_record) p.record("gathered" + n, kUnshard);
    if (!faults.no_wait_for_gather) p.wait(kCompute, "gathered" + n);
    p.alloc("grad" + n, kCompute);
    if (faults.early_free) p.free("grad" + n);
    p.launch("mm" + n, kCompute, {{"full" + n, Access::read}, {"grad" + n, Access::write}});
    if (!faults.no_record_stream) p.record_stream("full" + n, kCompute);
    p.free("full" + n);
    p.sync(kCompute, kPost, "backward done" + n);
    p.reduce(kPost, {{"grad" + n, Access::read}});
    p.record_stream("grad" + n, kPost);
    if (!faults.early_free && !faults.no_free) p.free("grad" + n);
    if (faults.double_free) p.free("grad" + n);
    p.unit_end("forward b" + n);
  }
  if (!faults.no_wait_for_reduce) p.sync(kPost, kCompute, "reduced");
  p.launch("optimizer", kCompute, {{"shard", Access::read_write}});
  p.end_step();
  return p;
}

bool mentions(const Finding& finding, const std::string& words) { return finding.text.find(words) != std::string::npos; }

std::string all(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings) text += f.text + "\n";
  return text;
}

}  // namespace

TEST_CASE("a program with all waits and record_streams is clean, also when its step is repeated") {
  SmallProgram p = unit();
  CHECK(all(check(p.program)) == "");
  p.repeat(5);
  CHECK(all(check(p.program)) == "");
}

TEST_CASE("a missing wait is one race per unit, and both ops are named in words") {
  const auto findings = check(unit({.no_wait_for_gather = true}).program);
  INFO(all(findings));
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].fault == Fault::race);
  CHECK(mentions(findings[0], "race on full0"));
  CHECK(mentions(findings[0], "(launch \"mm0\" on compute, in forward b0, step 0) reads it"));
  CHECK(mentions(findings[0], "(collective \"all_gather\" on unshard, in forward b0, step 0), which writes it"));
  CHECK(mentions(findings[0], "a wait of compute for unshard is missing"));
}

TEST_CASE("without the wait for compute, a gather races with the optimizer of the step before") {
  SmallProgram p = unit().repeat(2);
  CHECK(check(p.program).empty());
  SmallProgram q = p.without(OpKind::wait, "optimizer done");
  const auto findings = check(q.program);
  INFO(all(findings));
  REQUIRE(!findings.empty());
  CHECK(findings[0].fault == Fault::race);
  CHECK(findings[0].first.step == 0);
  CHECK(findings[0].second.step == 1);
  CHECK(mentions(findings[0], "\"optimizer\" on compute, step 0"));
}

TEST_CASE("a missing record_stream lets the next gather overwrite what compute still reads") {
  const auto forward = [](bool record_stream) {
    SmallProgram p;
    for (const std::string n : {"0", "1", "2"}) {
      p.alloc("full" + n, kUnshard).gather(kUnshard, {{"full" + n, Access::write}}).sync(kUnshard, kCompute, "gathered" + n);
      p.launch("mm" + n, kCompute, {{"full" + n, Access::read}});
      if (record_stream) p.record_stream("full" + n, kCompute);
      p.free("full" + n);
    }
    return p.end_step();
  };
  CHECK(all(check(forward(true).program)) == "");
  const auto findings = check(forward(false).program);
  INFO(all(findings));
  REQUIRE(findings.size() == 2);  // full1 over full0, full2 over full1
  CHECK(findings[0].fault == Fault::reuse_race);
  CHECK(mentions(findings[0], "uses full1, whose memory may be that of full0"));
  CHECK(mentions(findings[0], "(launch \"mm0\" on compute, step 0) may still use it; a record_stream for compute"));
  // With a reduce-scatter between the gathers, the communicator's FIFO already holds the next gather back behind compute.
  CHECK(check(unit({.no_record_stream = true}).program).empty());
}

TEST_CASE("an order set up after the free and before the reuse is enough") {
  SmallProgram p;
  p.alloc("a", kPost).launch("write", kPost, {{"a", Access::write}}).sync(kPost, kCompute, "written").launch("read", kCompute, {{"a", Access::read}}).free("a");
  SmallProgram unordered = p;
  unordered.alloc("b", kPost).launch("reuse", kPost, {{"b", Access::write}}).end_step();
  REQUIRE(check(unordered.program).size() == 1);
  CHECK(check(unordered.program)[0].fault == Fault::reuse_race);
  SmallProgram ordered = p;
  ordered.alloc("b", kPost).sync(kCompute, kPost, "read").launch("reuse", kPost, {{"b", Access::write}}).end_step();
  CHECK(all(check(ordered.program)) == "");
}

TEST_CASE("memory of a pool is only safe in the order of its own stream") {
  SmallProgram p;
  p.alloc("a", kCompute)
      .launch("write", kCompute, {{"a", Access::write}})
      .free("a")
      .alloc("b", kCompute)
      .launch("elsewhere", kPost, {{"b", Access::write}})
      .end_step();
  const auto findings = check(p.program);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].fault == Fault::reuse_race);
}

TEST_CASE("an early free is a use after free") {
  const auto findings = check(unit({.early_free = true}, 1).program);
  INFO(all(findings));
  REQUIRE(!findings.empty());
  CHECK(findings[0].fault == Fault::use_after_free);
  CHECK(mentions(findings[0], "use after free of grad0"));
  CHECK(mentions(findings[0], "given back by op"));
}

TEST_CASE("a double free, a double alloc and a free of nothing are found") {
  const auto twice = check(unit({.double_free = true}, 1).program);
  REQUIRE(twice.size() == 1);
  CHECK(twice[0].fault == Fault::free_twice);
  SmallProgram p;
  p.alloc("a", kCompute).alloc("a", kCompute).free("b").end_step();
  const auto findings = check(p.program);
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].fault == Fault::alloc_twice);
  CHECK(findings[1].fault == Fault::free_twice);
}

TEST_CASE("a use before the alloc is found; a program without any alloc has no memory to check") {
  SmallProgram p;
  p.launch("early", kCompute, {{"a", Access::read}});
  SmallProgram fixed_costs = p;
  CHECK(all(check(fixed_costs.end_step().program)) == "");
  p.alloc("a", kCompute).free("a").end_step();
  const auto findings = check(p.program);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].fault == Fault::use_before_alloc);
}

TEST_CASE("a wait for an event that was never recorded is found, and so is the race that it leaves") {
  const auto findings = check(unit({.no_record = true}, 1).program);
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].fault == Fault::wait_before_record);
  CHECK(mentions(findings[0], "\"gathered0\""));
  CHECK(findings[1].fault == Fault::race);
}

TEST_CASE("a leak shows at the end of the second step, for every buffer that only then is live") {
  SmallProgram p;
  p.alloc("kept", kCompute).end_setup();
  p.alloc("once", kCompute).end_step();
  p.alloc("more", kCompute).end_step();
  const auto findings = check(p.program);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].fault == Fault::leak);
  CHECK(mentions(findings[0], "leak of more"));
  CHECK(!check(unit({.no_free = true}).repeat(2).program).empty());  // here the second alloc says it first
}

TEST_CASE("a host wait orders all that is enqueued after it; a communicator orders its collectives across streams") {
  SmallProgram p;
  p.alloc("a", kCompute)
      .launch("write", kCompute, {{"a", Access::write}})
      .record("e", kCompute)
      .host_wait("e")
      .launch("read", kUnshard, {{"a", Access::read}})
      .end_step();
  CHECK(all(check(p.program)) == "");
  CHECK(check(p.without(OpKind::host_wait, "e").program).size() == 1);

  SmallProgram q;
  q.alloc("a", kCompute).gather(kUnshard, {{"a", Access::write}}).reduce(kPost, {{"a", Access::read}}).end_step();
  CHECK(all(check(q.program)) == "");
  SmallProgram two_communicators;
  two_communicators.alloc("a", kCompute)
      .gather(kUnshard, {{"a", Access::write}})
      .collective("all_reduce", hw::CollectiveKind::all_reduce, Communicator::replica, kPost, {{"a", Access::read}});
  CHECK(check(two_communicators.end_step().program).size() == 1);
}

TEST_CASE("a wait means the latest record at the time of the wait") {
  SmallProgram p;
  p.alloc("a", kCompute).launch("one", kCompute, {{"a", Access::write}}).record("e", kCompute).launch("two", kCompute, {{"a", Access::write}});
  SmallProgram stale = p;
  CHECK(check(stale.wait(kPost, "e").launch("read", kPost, {{"a", Access::read}}).end_step().program).size() == 1);
  CHECK(check(p.record("e", kCompute).wait(kPost, "e").launch("read", kPost, {{"a", Access::read}}).end_step().program).empty());
}

TEST_CASE("ranks that issue collectives in another order are named with both ops") {
  const auto rank = [](bool swapped) {
    SmallProgram p;
    p.alloc("a", kCompute).alloc("b", kCompute);
    if (swapped) p.sync(kCompute, kPost, "x").reduce(kPost, {{"b", Access::read}}).gather(kUnshard, {{"a", Access::write}});
    else p.gather(kUnshard, {{"a", Access::write}}).sync(kCompute, kPost, "x").reduce(kPost, {{"b", Access::read}});
    p.end_step();
    return p.program;
  };
  const std::vector<Program> alike = {rank(false), rank(false)};
  CHECK(check_ranks(alike).empty());
  const std::vector<Program> different = {rank(false), rank(false), rank(true)};
  const auto findings = check_ranks(different);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].fault == Fault::collective_order);
  CHECK(findings[0].second.rank == 2);
  CHECK(mentions(findings[0], "rank 0 issues op 2 (collective \"all_gather\" on unshard, step 0)"));
  CHECK(mentions(findings[0], "rank 2 issues op 4 (collective \"reduce_scatter\" on post_backward, step 0)"));
}

TEST_CASE("a rank with a collective too few is named") {
  SmallProgram a, b;
  a.alloc("x", kCompute).gather(kUnshard, {{"x", Access::write}}).gather(kUnshard, {{"x", Access::write}}).end_step();
  b.alloc("x", kCompute).gather(kUnshard, {{"x", Access::write}}).end_step();
  const std::vector<Program> ranks = {a.program, b.program};
  const auto findings = check_ranks(ranks);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].fault == Fault::collective_count);
  CHECK(mentions(findings[0], "rank 1 issues none"));
}

TEST_CASE("ids and ranges outside the tables are findings, not crashes") {
  SmallProgram p = unit();
  p.program.ops[3].id = 12345;
  p.program.operands[0].buffer = 999;
  p.program.steps.push_back({5, 1'000'000});
  const auto findings = check(p.program);
  REQUIRE(findings.size() >= 3);
  for (const Finding& f : findings) CHECK(f.fault == Fault::malformed);
}

TEST_CASE("the checker is linear: fifteen thousand ops take milliseconds") {
  const SmallProgram p = unit({}, 1000).repeat(2);
  REQUIRE(p.program.ops.size() > 15'000);
  const auto start = std::chrono::steady_clock::now();
  CHECK(check(p.program).empty());
  const auto elapsed = std::chrono::steady_clock::now() - start;
  CHECK(elapsed < std::chrono::milliseconds(500));  // about 2 ms in Release; the bound leaves room for sanitizers and busy machines
}
