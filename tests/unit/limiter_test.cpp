// The rate limiter's queue, row by row: which free event each UNSHARD waits for, in the first and in later iterations.
// Expected values were derived by hand from the two primitives and the hooks (docs/fsdp1.md, "Rate limiter").
#include <doctest/doctest.h>

#include "program/build.hpp"
#include "tests/support/schedule.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using Words = std::vector<std::string>;

/// Host waits, with the mark (hook) in which each stands: "forward b3: F(b1)".
Words waits(const Program& program, Range range) {
  Words result;
  std::string where;
  for (const Op& op : program.slice(range)) {
    if (op.kind == OpKind::mark && program.marks[op.id].kind == MarkKind::unit && program.marks[op.id].begin) where = program.marks[op.id].label;
    if (op.kind == OpKind::host_wait) result.push_back(where + ": " + program.events[op.id].label);
  }
  return result;
}

TEST_CASE("BACKWARD_PRE, 8 blocks, first iteration: lag 2") {
  const Program p = build_program(test::fixed_step(8), 3);
  CHECK(waits(p, p.steps[0]) == Words{"forward b2: F(b0)", "forward b3: F(b1)", "forward b4: F(b2)", "forward b5: F(b3)", "forward b6: F(b4)",
                                      "forward b7: F(b5)",
                                      "backward root: F(b6)",  // no all-gather follows; the prefetch of b7 finds one event only
                                      "backward b6: F(b7)",    // prefetch of b5
                                      "backward b5: B(b7)",    // of b4
                                      "backward b4: B(b6)", "backward b3: B(b5)", "backward b2: B(b4)", "backward b1: B(b3)"});
}

TEST_CASE("BACKWARD_PRE, 8 blocks, steady state: four events come over, lag 3") {
  const Program p = build_program(test::fixed_step(8), 3);
  CHECK(waits(p, p.steps[1]) == Words{"forward root: B(b2)", "forward b0: B(b1)", "forward b1: B(b0)", "forward b2: B(root)", "forward b3: F(b0)",
                                      "forward b4: F(b1)", "forward b5: F(b2)", "forward b6: F(b3)", "forward b7: F(b4)",
                                      "backward root: F(b5)",  // UNSHARD of the root
                                      "backward root: F(b6)",  // prefetch of b7
                                      "backward b6: F(b7)", "backward b5: B(b7)", "backward b4: B(b6)", "backward b3: B(b5)", "backward b2: B(b4)",
                                      "backward b1: B(b3)"});
  CHECK(p.steps[2] == p.steps[1]);
}

TEST_CASE("BACKWARD_POST and NONE: steady forward lag 2") {
  for (const BackwardPrefetch prefetch : {BackwardPrefetch::post, BackwardPrefetch::none}) {
    StepSpec spec = test::fixed_step(8);
    spec.policy.backward_prefetch = prefetch;
    const Program p = build_program(spec, 3);
    const Words steady = waits(p, p.steps[1]);
    REQUIRE(steady.size() > 8);
    CHECK(steady[0] == "forward root: B(b1)");
    CHECK(steady[1] == "forward b0: B(b0)");
    CHECK(steady[2] == "forward b1: B(root)");
    for (int block = 2; block < 8; ++block) {
      CHECK(steady[static_cast<std::size_t>(block) + 1] == "forward b" + std::to_string(block) + ": F(b" + std::to_string(block - 2) + ")");
    }
    CHECK(p.steps[2] == p.steps[1]);
  }
}

TEST_CASE("off: the host never waits, nothing is recorded for it") {
  StepSpec spec = test::fixed_step(8);
  spec.policy.limit_all_gathers = false;
  const Program p = build_program(spec, 2);
  CHECK(waits(p, p.steps[1]).empty());
  CHECK(test::count_prefix(test::words(p, p.steps[1], {OpKind::record}), "record F(") == 0);
}

TEST_CASE("SHARD_GRAD_OP: the forward frees nothing, the backward still pops") {
  StepSpec spec = test::fixed_step(8);
  spec.policy.sharding = Sharding::shard_grad_op;
  const Program p = build_program(spec, 3);
  // Two events must stand in the queue before one is popped.
  CHECK(waits(p, p.steps[0]) == Words{"backward b5: B(b7)", "backward b4: B(b6)", "backward b3: B(b5)", "backward b2: B(b4)", "backward b1: B(b3)"});
}

TEST_CASE("an event in the queue is not recorded again") {
  for (std::int64_t layers = 1; layers <= 4; ++layers) {
    StepSpec spec = test::fixed_step(layers);
    const Program p = build_program(spec, 6);
    std::vector<std::uint32_t> queue;
    for (const Range& step : p.steps) {
      for (const Op& op : p.slice(step)) {
        const std::string& label = op.kind == OpKind::record ? p.events[op.id].label : std::string();
        if (op.kind == OpKind::record && label.rfind("tail", 0) != 0) {
          CHECK(std::find(queue.begin(), queue.end(), op.id) == queue.end());
          queue.push_back(op.id);
        }
        if (op.kind == OpKind::host_wait) {
          REQUIRE(!queue.empty());
          CHECK(queue.front() == op.id);  // first in, first out, across steps
          queue.erase(queue.begin());
        }
      }
    }
    CHECK(queue.size() <= 5);
  }
}

}  // namespace
}  // namespace stepcast::program
