// Passes of a step, by hand: a forward and its autograd thread, and both on one thread. docs/diagnose.md, "Passes".
#include "trace/profile/passes.hpp"

#include <doctest/doctest.h>

#include "support/profile_json.hpp"
#include "trace/profile/findings.hpp"
#include "trace/profile/workload.hpp"

using stepcast::test::ProfileJson;
using namespace stepcast::trace::profile;

namespace {

constexpr const char* kGraph = R"("Sequence number":3,"Fwd thread id":0)";
constexpr const char* kNode = R"("Sequence number":3,"Fwd thread id":1)";

Time us(int microseconds) { return std::chrono::microseconds(microseconds); }

/// A kernel of 40 us, launched at `at` on a thread.
void launched(ProfileJson& json, int at, int number, int thread) { json.call("cudaLaunchKernel", at, 2, number, thread).kernel("gemm", at + 5, 40, 7, number); }

/// Forward on thread 1; on thread 2 a backward node, within which a checkpointed forward operator runs again; the optimizer on thread 1.
ProfileJson checkpointed() {
  ProfileJson json;
  json.event("cpu_op", "aten::mm", 0, 20, 1, kGraph);
  launched(json, 10, 1, 1);
  json.event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 100, 200, 2, kNode)
      .event("cpu_op", "MmBackward0", 105, 190, 2, kNode)
      .event("cpu_op", "aten::mm", 110, 30, 2, kGraph);
  launched(json, 120, 2, 2);
  json.event("cpu_op", "aten::mm", 200, 30, 2);
  launched(json, 210, 3, 2);
  json.range("Optimizer.step#AdamW.step", 400, 100);
  launched(json, 410, 4, 1);
  return json;
}

}  // namespace

TEST_CASE("an operator that autograd records within a backward is a recomputation; what the backward launches besides is not") {
  const Profile p = checkpointed().read();
  const Passes passes(p);
  REQUIRE(p.device_ops.size() == 4);
  CHECK(passes.of(p, p.device_ops[0]) == Pass::forward);
  CHECK(passes.of(p, p.device_ops[1]) == Pass::recomputation);
  CHECK(passes.of(p, p.device_ops[2]) == Pass::backward);
  CHECK(passes.of(p, p.device_ops[3]) == Pass::optimizer);
  for (const Pass pass : {Pass::forward, Pass::recomputation, Pass::backward, Pass::optimizer}) {
    const PassTotal total = pass_totals(p, 0, passes)[static_cast<std::size_t>(pass)];
    CHECK(total.kernels == 1);
    CHECK(total.compute == us(40));
  }
}

TEST_CASE("recomputation is found, with its share of the window") {
  const auto found = findings_of(diagnose(checkpointed().read()));
  const auto f = std::find_if(found.begin(), found.end(), [](const Finding& finding) { return finding.name == "recomputation"; });
  REQUIRE(f != found.end());
  CHECK(f->share == doctest::Approx(40.0 / 440));
  CHECK(f->evidence[0].starts_with("1 kernels of the forward ran again in the backward: 40.0 us, 25.0 % of all compute"));
}

TEST_CASE("a launch that is not in the file has no known pass") {
  const Profile p = ProfileJson().kernel("gemm", 0, 10, 7, 1).read();
  CHECK(Passes(p).of(p, p.device_ops[0]) == Pass::unknown);
}

TEST_CASE("steps on the device: from the end of what a step launched to that of the next") {
  ProfileJson json;
  for (int step = 0; step < 3; ++step) {
    json.range("ProfilerStep#" + std::to_string(step), 100 * step, 100);
    launched(json, 100 * step + 10, step + 1, 1);
  }
  const Profile p = json.read();
  const StepsOnDevice steps = steps_on_device(p, 0, Passes(p));
  CHECK(steps.steps == 2);
  CHECK(steps.mean() == us(100));
  CHECK(steps.times.compute == us(80));
  CHECK(steps.times.idle == us(120));
  CHECK(steps.passes[0].kernels == 2);
  ProfileJson unmarked;
  launched(unmarked, 10, 1, 1);
  const Profile whole = unmarked.read();
  CHECK(steps_on_device(whole, 0, Passes(whole)).steps == 0);
  CHECK(steps_on_device(whole, 0, Passes(whole)).times.span == us(40));
}

TEST_CASE("the workload: products and attention by shape and pass, collectives by message, in the order of their issue") {
  ProfileJson json;
  json.range("ProfilerStep#0", 0, 1000)
      .event("cpu_op", "aten::mm", 10, 5, 1, R"("External id":1,"Input Dims":[[64, 32], [32, 16]],"Input type":["c10::BFloat16", "c10::BFloat16"])")
      .event("cpu_op", "aten::addmm", 30, 5, 1, R"("External id":2,"Input Dims":[[16], [64, 32], [32, 16]],"Input type":["c10::BFloat16"])")
      .event("cpu_op", "aten::embedding", 2, 5, 1, R"("External id":3,"Input Dims":[[100, 32], [2, 32]],"Input type":["c10::BFloat16", "long int"])")
      .event("cpu_op", "aten::mm", 2000, 5, 1, R"("External id":4,"Input Dims":[[64, 32], [32, 16]],"Input type":["c10::BFloat16"])")
      .call("cudaLaunchKernel", 20, 2, 9)
      .raw(
          R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather_RING_LL","pid":0,"tid":20,"ts":50,"dur":10,"args":{"device":0,"stream":20,"correlation":9,)"
          R"("Collective name":"_allgather_base","In msg nelems":100,"Out msg nelems":800,"Group size":8,"dtype":"BFloat16"}})");
  const Profile p = json.read();
  const Workload w = workload_of(p, 0, Passes(p));
  REQUIRE(w.products.size() == 2);  // what lies outside of the step is not counted
  CHECK(w.products[0].count + w.products[1].count == 2);
  CHECK(w.products[0].biased != w.products[1].biased);
  CHECK(w.products[0].dtype == stepcast::hw::Dtype::bf16);
  REQUIRE(w.lookups.size() == 1);
  CHECK(w.lookups[0].lookup.rows == 100);
  REQUIRE(w.messages.size() == 1);
  CHECK(w.messages[0].bytes == 1600);
  CHECK(w.messages[0].ranks == 8);
  REQUIRE(w.order.size() == 3);
  CHECK_FALSE(w.order[0].message);
  CHECK(w.order[1].message);
  // RCCL's one kernel for all: what was asked for counts.
  const Profile generic =
      ProfileJson()
          .raw(R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic_1","pid":0,"tid":20,"ts":5,"dur":1,"args":{"device":0,"stream":20,)"
               R"("Collective name":"_reduce_scatter_base","In msg nelems":800,"Out msg nelems":100,"Group size":8,"dtype":"Float"}})")
          .read();
  CHECK(workload_of(generic, 0, Passes(generic)).messages.at(0).type == "reducescatter");
  CHECK(workload_of(generic, 0, Passes(generic)).messages.at(0).bytes == 3200);
  CHECK(mentions(p, "AllGather"));
  CHECK_FALSE(mentions(p, "ReduceScatter"));
}
