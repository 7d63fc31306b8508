// The simulator's own traces through breakdown and writer: gaps whose length and cause follow from the FSDP schedule alone, in fixed-cost mode.
// Schedule: program/fsdp1.hpp; definitions: docs/breakdown.md.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "program/build.hpp"
#include "sim/simulate.hpp"
#include "tests/support/chrome_check.hpp"
#include "tests/support/specs.hpp"
#include "trace/breakdown.hpp"
#include "trace/chrome_writer.hpp"

using namespace stepcast;
using trace::GapCause;

namespace {

constexpr std::int64_t kLayers = 8;
constexpr SimTime ms(std::int64_t milliseconds) { return std::chrono::milliseconds(milliseconds); }

struct Case {
  program::BackwardPrefetch prefetch = program::BackwardPrefetch::pre;
  SimTime all_gather = ms(4), host_per_kernel = std::chrono::microseconds(10);
  std::int64_t accumulation = 1;
};

/// Every kernel takes 10 ms, a block's backward 20 ms; a reduce-scatter takes as long as an all-gather. Two steps, the second recorded.
trace::Trace simulated(const Case& c) {
  auto spec = program::test::fixed_step(kLayers);
  spec.policy.backward_prefetch = c.prefetch;
  spec.batch.grad_accum = c.accumulation;
  sim::FixedCosts costs;
  for (auto& phase : costs.phases) phase = ms(10);
  costs.phases[static_cast<std::size_t>(hw::FixedPhase::block_backward)] = ms(20);
  costs.all_gather_block = costs.all_gather_root = costs.reduce_scatter_block = costs.reduce_scatter_root = c.all_gather;
  costs.host_per_kernel = c.host_per_kernel;
  costs.host_per_collective = std::chrono::microseconds(20);
  const auto program = program::build_program(spec, 2);
  sim::Options options;
  options.world_size = 32;
  options.record_from_step = 1;
  options.memory_limit = false;
  return sim::simulate(program, sim::price(program, costs), options).trace;
}

trace::Breakdown broken_down(const trace::Trace& trace) { return trace::break_down(trace, trace.ranks.at(0), 1); }
SimTime total(const trace::Breakdown& breakdown, GapCause cause) { return breakdown.causes[static_cast<std::size_t>(cause)].total; }

}  // namespace

TEST_CASE("with short collectives only the ends of the step are exposed: the root's all-gather and the last reduce-scatter") {
  const auto out = broken_down(simulated({}));
  CHECK(total(out, GapCause::all_gather) == ms(4));
  CHECK(total(out, GapCause::reduce_scatter) == ms(4));
  CHECK(out.total.exposed == ms(8));
  CHECK(out.total.compute == ms(10 + kLayers * 10 + 10 + 10 + kLayers * 20 + 10 + 10));  // embedding, blocks, head; head, blocks, embedding; optimizer
  CHECK(out.total.idle == ms(0));
}

TEST_CASE("without backward prefetch each unit's all-gather and reduce-scatter stand between its backward and that of the next") {
  const auto out = broken_down(simulated({.prefetch = program::BackwardPrefetch::none}));
  // All-gathers: the root's, and in the backward that of each block but the last one's, which the head's backward hides. Reduce-scatters: that of each block but
  // the first one's, which the embedding's backward hides, and the root's.
  CHECK(total(out, GapCause::all_gather) == out.exposed_by_kind[0]);
  CHECK(total(out, GapCause::reduce_scatter) == out.exposed_by_kind[1]);
  CHECK(out.exposed_by_kind[0] == ms(4 * kLayers));
  CHECK(out.exposed_by_kind[1] == ms(4 * kLayers));
}

TEST_CASE("a slow host makes launch-bound gaps of exactly the time that it lags") {
  const auto out = broken_down(simulated({.host_per_kernel = ms(12)}));
  SimTime gaps{};
  for (const auto& gap : out.gaps) gaps += gap.end - gap.begin;
  CHECK(total(out, GapCause::launch_bound) > ms(0));
  CHECK(total(out, GapCause::launch_bound) + total(out, GapCause::all_gather) + total(out, GapCause::reduce_scatter) == gaps);
  CHECK(out.total.exposed + out.total.idle == gaps);  // no kernels on other streams here
  CHECK(total(out, GapCause::launch_bound) == out.total.idle);
}

TEST_CASE("a simulated trace is a file that satisfies the checker, with its step and all of its device work") {
  for (const std::int64_t accumulation : {1, 2}) {
    for (const SimTime all_gather : {ms(4), ms(15)}) {
      const auto trace = simulated({.all_gather = all_gather, .accumulation = accumulation});
      std::ostringstream text;
      trace::write_chrome(trace, text);
      const auto file = nlohmann::json::parse(text.str());
      CHECK(test::check_chrome(file) == std::vector<std::string>{});
      std::size_t kernels = 0, recorded = 0, marks = 0;
      for (const auto& event : file["traceEvents"]) {
        kernels += event.value("cat", "") == "kernel";
        marks += event.value("cat", "") == "user_annotation" && event["name"] == "ProfilerStep#1";
      }
      for (const auto& slice : trace.ranks[0].slices) recorded += slice.lane >= 0;
      CHECK(kernels == recorded);
      CHECK(marks == 1);
    }
  }
}
