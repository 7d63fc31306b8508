// Interning and appending of ops.
#include "program/builder.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

namespace stepcast::program {
namespace {

TEST_CASE("equal keys give equal ids, different keys different ones") {
  Builder b;
  const hw::KernelShape small{.read_bytes = 8, .write_bytes = 4}, large{.read_bytes = 16, .write_bytes = 4};
  CHECK(b.kernel(small, "aten::add", "k") == 0);
  CHECK(b.kernel(large, "aten::add", "k") == 1);
  CHECK(b.kernel(small, "aten::mul", "k") == 2);
  CHECK(b.kernel(small, "aten::add", "other") == 3);
  CHECK(b.kernel(small, "aten::add", "k") == 0);
  CHECK(b.buffer("x", 512, Owner::loss) == 0);
  CHECK(b.buffer("y", 512, Owner::loss) == 1);
  CHECK(b.buffer("x", 512, Owner::loss) == 0);
  CHECK(b.event("e") == b.event("e"));
  CHECK(b.mark(MarkKind::unit, true, 1, "b1") != b.mark(MarkKind::unit, false, 1, "b1"));
}

TEST_CASE("a label names one buffer only") {
  Builder b;
  b.buffer("x", 512, Owner::loss);
  CHECK_THROWS_AS(b.buffer("x", 513, Owner::loss), std::logic_error);
  CHECK_THROWS_AS(b.buffer("x", 512, Owner::input), std::logic_error);
}

TEST_CASE("ops keep the order of the calls and their operands") {
  Builder b;
  const auto k = b.kernel({}, "op", "kernel");
  const auto x = b.buffer("x", 4, Owner::activations), y = b.buffer("y", 4, Owner::activations);
  b.alloc(y, Stream::unshard);
  b.launch(k, Stream::compute, hw::HostWork::op_forward, {in(x), out(y)});
  b.host_work(hw::HostWork::extra_launch, 0);  // nothing to do, no op
  b.host_wait(b.event("e"), WaitReason::synchronize);
  const Program& p = b.program();
  REQUIRE(p.ops.size() == 3);
  CHECK(p.ops[0] == Op{.kind = OpKind::alloc, .stream = Stream::unshard, .id = y});
  REQUIRE(p.operands_of(p.ops[1]).size() == 2);
  CHECK(p.operands_of(p.ops[1])[1] == out(y));
  CHECK(p.ops[2].count == static_cast<std::uint32_t>(WaitReason::synchronize));
}

TEST_CASE("more than 255 operands, as the gradient concat of a large unit has") {
  Builder b;
  std::vector<Operand> operands(300, in(b.buffer("x", 4, Owner::gradients)));
  b.launch(b.kernel({}, "cat", "cat"), Stream::compute, hw::HostWork::op_backward, operands);
  CHECK(b.program().operands_of(b.program().ops[0]).size() == 300);
  operands.resize(70000);
  CHECK_THROWS_AS(b.launch(0, Stream::compute, hw::HostWork::op_backward, operands), std::length_error);
}

TEST_CASE("schedule detail leaves memory and host work out") {
  Builder b(Detail::schedule);
  const auto x = b.buffer("x", 4, Owner::activations);
  b.alloc(x, Stream::compute);
  b.free(x);
  b.record_stream(x, Stream::unshard);
  b.host_work(hw::HostWork::step_begin);
  b.next_batch();
  CHECK(b.position() == 0);
  b.record(b.event("e"), Stream::compute);
  CHECK(b.position() == 1);
}

TEST_CASE("an op stays small") { CHECK(sizeof(Op) == 20); }

}  // namespace
}  // namespace stepcast::program
