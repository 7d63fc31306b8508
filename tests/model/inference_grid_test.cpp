// What was simulated comes back from its trace: model, batch, policy, recomputation, kernels and types over a grid of scenarios; and the scenario that comes back, simulated,
// takes the same time. docs/diagnose.md, "From a trace to a scenario".
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/diagnose/trace_scenario.hpp"
#include "support/forecast.hpp"
#include "tests/support/sanitized.hpp"
#include "trace/chrome_writer.hpp"
#include "trace/profile/import.hpp"

namespace cli = stepcast::cli;
namespace profile = stepcast::trace::profile;
using Json = nlohmann::ordered_json;
using stepcast::scenarios::Scenario;

namespace {

profile::RankDiagnosis diagnosis_of(const Scenario& scenario) {
  std::stringstream file;
  stepcast::trace::write_chrome(cli::predict(scenario).result.trace, file);
  const std::string text = file.str();
  profile::MemorySource source(text);
  return profile::diagnose(profile::import_profile(source, "trace"));
}

/// Keys that no trace of a step tells.
bool hidden(const std::string& pointer) {
  for (const char* key : {"/name", "/why", "/schema", "/model/name", "/model/max_positions", "/model/style", "/policy/release", "/policy/use_orig_params",
                          "/policy/limit_all_gathers"}) {
    if (pointer == key) return true;
  }
  return false;
}

/// Every key of the two scenarios that differs, but for those.
std::vector<std::string> differences(const Scenario& a, const Scenario& b) {
  const Json ours = stepcast::scenarios::to_json(a).flatten(), theirs = stepcast::scenarios::to_json(b).flatten();
  std::vector<std::string> out;
  for (const auto& [pointer, value] : ours.items()) {
    if (hidden(pointer) || (theirs.contains(pointer) && theirs[pointer] == value)) continue;
    out.push_back(pointer + ": " + value.dump() + " came back as " + (theirs.contains(pointer) ? theirs[pointer].dump() : "nothing"));
  }
  return out;
}

/// A simulated trace, and the scenario that is inferred from it.
struct CameBack {
  Scenario simulated;
  profile::RankDiagnosis rank;
  cli::TraceScenario inferred;
};

CameBack came_back(int layers, const std::vector<std::string>& sets) {
  std::vector<std::string> all = {"/model/layers=" + std::to_string(layers), "/batch/seq_len=1024"};
  all.insert(all.end(), sets.begin(), sets.end());
  const Scenario simulated = stepcast::scenarios::read_scenario("7b-32xa100", all);
  profile::RankDiagnosis rank = diagnosis_of(simulated);
  auto inferred = cli::scenario_of(rank, {}, {});
  REQUIRE(inferred);
  REQUIRE_MESSAGE(inferred->scenario, inferred->problem);
  return {simulated, std::move(rank), std::move(*inferred)};
}

std::string words(const std::vector<std::string>& sets) {
  std::string what;
  for (const std::string& set : sets) what += (what.empty() ? "" : " ") + set;
  return what;
}

void check(const std::vector<std::string>& sets) {
  const std::string what = words(sets);
  CAPTURE(what);
  const CameBack came = came_back(6, sets);
  const auto wrong = differences(came.simulated, *came.inferred.scenario);
  for (const std::string& line : wrong) MESSAGE(line);
  CHECK(wrong.empty());
  const cli::SideBySide compared = cli::side_by_side(came.rank, *came.inferred.scenario);
  REQUIRE(compared.outcome == "ok");
  for (const cli::ComparedTime& t : compared.times)
    CHECK_MESSAGE(std::fabs(t.predicted_us - t.traced_us) <= 0.001 * t.traced_us, t.name << ": " << t.traced_us << ", " << t.predicted_us);
}

/// The scenario that comes back with its host costs takes the traced time; of a launch-bound step that depends on nothing else.
void host(const std::vector<std::string>& sets) {
  const std::string what = words(sets);
  CAPTURE(what);
  CameBack came = came_back(4, sets);
  cli::add_host_cost(came.rank, {}, came.inferred);
  CHECK(came.inferred.draft.find("/host/scale")->certainty == cli::Certainty::seen);
  CHECK(came.inferred.scenario->host.scale == doctest::Approx(came.simulated.host.scale).epsilon(0.02));
  const cli::SideBySide compared = cli::side_by_side(came.rank, *came.inferred.scenario);
  REQUIRE(compared.outcome == "ok");
  const cli::ComparedTime& step = compared.times.at(0);
  CHECK_MESSAGE(step.predicted_us == doctest::Approx(step.traced_us).epsilon(0.01), step.traced_us << ", " << step.predicted_us);
}

}  // namespace

TEST_CASE("batch and model come back") {
  check({});
  check({"/batch/micro_batch=1", "/batch/seq_len=2048"});
  check({"/batch/micro_batch=4", "/batch/grad_accum=2"});
  check({"/batch/grad_accum=3", "/policy/no_sync=true"});
  check({"/model/preset=llama-3-8b"});
  check({"/model/preset=mpt-7b", "/model/max_positions=1024"});  // a longer table is not seen
  check({"/model/preset=gpt2-xl"});
  check({"/model/preset=phi-3-mini-4k", "/model/sliding_window=none"});
  check({"/model/preset=qwen2.5-7b"});
  check({"/model/hidden=2048", "/model/heads=16", "/model/ffn=5504", "/model/kv_heads=4", "/model/vocab=50304", "/model/layers=9"});
  check({"/model/tied_embeddings=true"});
  check({"/model/biases/qkv=true", "/model/biases/output=true"});
}

TEST_CASE("FSDP1's policy comes back") {
  for (const char* sharding : {"FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"}) check({std::string("/policy/sharding=") + sharding});
  for (const char* prefetch : {"BACKWARD_PRE", "BACKWARD_POST", "NONE"}) {
    for (const char* forward : {"true", "false"})
      check({std::string("/policy/backward_prefetch=") + prefetch, std::string("/policy/forward_prefetch=") + forward});
  }
  check({"/policy/blocks_per_unit=2"});
  check({"/policy/wrap=model", "/policy/sharding=SHARD_GRAD_OP"});  // one unit is never gathered again
}

TEST_CASE("FSDP2's policy comes back") {
  check({"/policy/framework=fsdp2"});
  check({"/policy/framework=fsdp2", "/policy/reshard_after_forward=false"});
  check({"/policy/framework=fsdp2", "/policy/reshard_after_forward=8"});
  check({"/policy/framework=fsdp2", "/policy/forward_prefetch_depth=2", "/policy/backward_prefetch_depth=3"});
  check({"/policy/framework=fsdp2", "/policy/wrap=embedding_and_head"});
}

TEST_CASE("recomputation comes back") {
  check({"/recompute/mode=full"});
  check({"/recompute/mode=every_k", "/recompute/every=2"});
  check({"/recompute/mode=every_k", "/recompute/every=3"});
  check({"/recompute/mode=share", "/recompute/share=0.6666666666666666"});
  for (const char* ops : {"all_but_attention", "all_but_matmul", "all_but_every_second_matmul"})
    check({"/recompute/mode=per_op", std::string("/recompute/ops=") + ops});
}

TEST_CASE("kernels and types come back") {
  for (const char* attention : {"flash1", "flash2", "triton", "efficient", "unfused"}) check({std::string("/kernels/attention=") + attention});
  check({"/kernels/set=pytorch-compile"});
  check({"/kernels/fused_norm=true"});
  for (const char* loss : {"eager_fp32", "fused", "fused_fp32", "chunked"}) check({std::string("/kernels/loss=") + loss});
  for (const char* implementation : {"for_loop", "foreach", "fused"}) check({std::string("/optimizer/implementation=") + implementation});
  check({"/optimizer/clip_grad_norm=false"});
  check({"/precision/reduce=fp32"});
  check({"/precision/param=fp16", "/precision/reduce=fp16"});
  check({"/precision/param=fp32", "/precision/reduce=fp32"});
}

TEST_CASE("adapters come back") {
  for (const char* targets : {"query_value", "attention", "all_linear"})
    check({"/model/lora_rank=16", std::string("/model/lora_targets=") + targets, "/policy/use_orig_params=true"});
  check({"/model/preset=phi-3-mini-4k", "/model/sliding_window=none", "/model/lora_rank=8", "/policy/framework=fsdp2"});
  check({"/model/preset=llama-3-8b", "/model/lora_rank=64", "/model/lora_targets=all_linear", "/policy/framework=fsdp2"});
}

TEST_CASE("the host comes back: its work so many times the profile's, whatever it waits for") {
  for (const char* scale : {"0.5", "2", "6", "20"}) {
    if (stepcast::test::kSanitized && scale != std::string("6")) continue;
    host({std::string("/host/scale=") + scale, "/batch/seq_len=256"});
    host({std::string("/host/scale=") + scale, "/policy/framework=fsdp2"});
    host({std::string("/host/scale=") + scale, "/batch/grad_accum=2", "/recompute/mode=full"});
    host({std::string("/host/scale=") + scale, "/policy/framework=ddp", "/model/hidden=1024", "/model/heads=16", "/model/ffn=2816", "/model/kv_heads=16"});
  }
  host({"/host/scale=3", "/loader/workers=0", "/loader/batch_time=40 ms"});
  host({"/host/scale=3", "/optimizer/implementation=for_loop", "/host/launch_queue_depth=64"});
}

TEST_CASE("a host that the user sets, or that no launch tells, is left as it is") {
  const Scenario simulated = stepcast::scenarios::read_scenario("7b-32xa100", std::vector<std::string>{"/model/layers=2", "/host/scale=4"});
  const profile::RankDiagnosis rank = diagnosis_of(simulated);
  const std::vector<std::string> sets = {"/host/scale=7"};
  auto inferred = cli::scenario_of(rank, {}, sets);
  REQUIRE(inferred);
  cli::add_host_cost(rank, sets, *inferred);
  CHECK(inferred->scenario->host.scale == 7);
  profile::RankDiagnosis silent = diagnosis_of(simulated);
  silent.profile.host_calls.clear();
  silent.profile.launches.clear();
  std::erase_if(silent.profile.host_ops, [](const profile::HostOp& op) { return op.annotation; });
  inferred = cli::scenario_of(rank, {}, {});
  cli::add_host_cost(silent, {}, *inferred);
  CHECK(inferred->scenario->host.scale == 1);
}

TEST_CASE("experts come back") {
  check({"/model/experts={\"count\": 8, \"active\": 2}", "/model/layers=3", "/model/ffn=5504"});
  check({"/model/experts={\"count\": 16, \"active\": 4}", "/model/layers=3", "/model/ffn=1408", "/policy/framework=fsdp2"});
  check({"/model/experts={\"count\": 4, \"active\": 1}", "/model/layers=3", "/model/ffn=5120", "/model/ffn_kind=gelu"});
}

TEST_CASE("the loader comes back") {
  check({"/loader/workers=0", "/loader/batch_time=40 ms"});
  check({"/loader/workers=0", "/loader/batch_time=900 ms", "/batch/grad_accum=2"});
  check({"/loader/workers=1", "/loader/batch_time=3 s"});
}
