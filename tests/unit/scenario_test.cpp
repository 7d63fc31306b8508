// The scenario format: what a minimal file means, that the resolved form reads back equal, and every kind of refusal with its place.
#include "scenarios/scenario.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hw_models/input_error.hpp"
#include "program/model.hpp"
#include "scenarios/supported.hpp"

using namespace stepcast;
using namespace stepcast::scenarios;

namespace {

const std::string kMinimal = R"({"model": {"preset": "llama-2-7b"}, "cluster": {"node": "dgx-a100", "nodes": 4}, "batch": {"seq_len": 4096}})";
const std::string kTeaching = R"({"model": {"layers": 8}, "cluster": {"nodes": 1}, "fixed_costs": {"block_forward": "10 ms", "all_gather_block": "5 ms"}})";

Scenario with(const std::vector<std::string>& sets, const std::string& text = kMinimal) { return read_scenario_text(text, "s.json", sets); }

std::string refusal(const std::vector<std::string>& sets, const std::string& text = kMinimal) {
  try {
    with(sets, text);
  } catch (const InputError& error) { return error.what(); }
  return "(nothing was refused)";
}

}  // namespace

TEST_CASE("a minimal scenario takes its defaults from the structs") {
  const Scenario scenario = with({});
  CHECK(scenario.name == "s");
  CHECK(scenario.model_name == "llama-2-7b");
  CHECK(program::parameters(scenario.model) == 6738415616);
  CHECK(scenario.policy == program::Policy{});
  CHECK(scenario.precision == program::Precision{});
  CHECK(scenario.run == Run{});
  CHECK(scenario.cluster.gpu == "a100-sxm4-80gb");
  CHECK(scenario.cluster.gpus_per_node == 8);
  CHECK(ranks(scenario) == 32);
  CHECK_FALSE(scenario.fixed_costs);
}

TEST_CASE("the resolved scenario reads back equal and byte for byte") {
  const std::vector<std::vector<std::string>> variants = {
      {},
      {"/name=a name", "/why=a reason", "/model/name=mine", "/run/steps=10", "/run/ranks=explicit", "/run/seed=7", "/run/flops_convention=6p"},
      {"/allocator/max_split_size=512 MiB", "/allocator/memory_fraction=0.9", "/allocator/device_memory=79.2 GiB", "/allocator/memory_outside_pool=3 GiB",
       "/allocator/expandable_segments=true"},
      {"/cluster/nic_rate=200 Gb/s", "/cluster/nics_per_node=4", "/cluster/nvlink_rate=300 GB/s", "/cluster/oversubscription=2.5"},
      {"/cluster/nvlink=pairs", "/cluster/peer_access=false", "/cluster/fabric=tcp"},
      {"/cluster/fabric=omni-path", "/cluster/gpudirect=false", "/cluster/nvlink=none"},
      {"/policy/sharding=SHARD_GRAD_OP", "/policy/backward_prefetch=NONE", "/policy/no_sync=true", "/batch/grad_accum=4", "/policy/blocks_per_unit=2"},
      {"/recompute/mode=full", "/recompute/early_stop=false", "/kernels/set=pytorch-compile", "/kernels/attention=unfused", "/kernels/loss=fused"},
      {"/precision/param=fp16", "/precision/reduce=fp32", "/optimizer/implementation=fused", "/optimizer/clip_grad_norm=false"},
      {"/loader/batch_time=12.5 ms", "/loader/workers=0", "/host/scale=1.37", "/host/launch_queue_depth=16", "/host/sync_each_step=true",
       "/host/cuda_device_max_connections=1"},
      {"/loader/pin_memory=false", "/loader/non_blocking=false", "/loader/sample_bytes=600 kB", "/host/gc_period=20 s", "/host/gc_pause=0.25 s",
       "/host/gc_synchronised=true"},
      {"/run/ranks=explicit",
       "/run/jitter={\"kernel\": 0.02, \"host\": 0.1, \"collective\": 0.05, \"rank_speed\": 0.01, \"pause_period\": \"1 s\", \"pause\": \"10 ms\"}",
       "/loader/batch_time=1 s", "/loader/batch_time_spread=0.3",
       "/run/slow_ranks=[{\"rank\": 3, \"compute_scale\": 1.2}, {\"rank\": 31, \"host_scale\": 2, \"nic_scale\": 1.5}]"},
      {"/model/preset=gpt2-xl", "/batch/seq_len=1024"},
      {"/model/preset=gemma-2-9b"},
      {"/model/experts/count=4", "/model/experts/active=1", "/model/sliding_window=100", "/model/full_attention_every=3", "/model/fused_qkv=true"},
      {"/model/style=gpt", "/model/layout=parallel", "/model/fused_gate_up=true"},
  };
  for (const auto& sets : variants) {
    const Scenario scenario = with(sets);
    const Scenario again = read_scenario_text(to_json_text(scenario), "again.json");
    CHECK(again == scenario);
    CHECK(to_json_text(again) == to_json_text(scenario));
    if (!sets.empty()) CHECK_FALSE(scenario == with({}));
  }
  const Scenario teaching = with({}, kTeaching);
  CHECK(read_scenario_text(to_json_text(teaching), "again.json") == teaching);
}

TEST_CASE("values arrive in their fields") {
  const Scenario scenario =
      with({"/allocator/max_split_size=512 MiB", "/cluster/nic_rate=200 Gb/s", "/loader/batch_time=3 ms", "/policy/limit_all_gathers=false"});
  CHECK(scenario.allocator.max_split_size == 536870912);
  CHECK(scenario.cluster.nic_rate->si() == 25e9);
  CHECK(scenario.loader.batch_time.si() == 3e-3);
  CHECK_FALSE(scenario.policy.limit_all_gathers);
  CHECK(hardware(scenario).node.at("nic_rate") == 25e9);
  CHECK(hardware(scenario).gpu == "a100-sxm4-80gb");
  CHECK(hardware(scenario).node.constants.at("nic_rate").source == "scenario");
  CHECK(hardware(scenario).node.constants.at("gpus").source != "scenario");
  CHECK(hardware(with({"/cluster/gpus_per_node=4"})).gpus_per_node == 4);
}

TEST_CASE("an explicit model") {
  const std::string tiny = R"({"model": {"hidden": 256, "layers": 2, "heads": 4, "ffn": 512, "vocab": 1000},
    "cluster": {"node": "dgx-a100", "nodes": 1}, "batch": {"seq_len": 128}})";
  const Scenario scenario = with({}, tiny);
  CHECK(scenario.model.kv_heads == 4);
  CHECK(scenario.model.head_dim == 64);
  // 2 * 1000 * 256 embedding and head, 256 final norm, per block 4 * 256^2 attention, 3 * 256 * 512 feed-forward, 2 * 256 norms.
  CHECK(program::parameters(scenario.model) == 2 * 1000 * 256 + 256 + 2 * (4 * 65536 + 3 * 131072 + 512));
  const Scenario gpt = with({"/model/style=gpt", "/model/max_positions=128", "/model/biases/norm=false"}, tiny);
  CHECK(gpt.model.attention_bias);
  CHECK_FALSE(gpt.model.norm_bias);
  CHECK(gpt.model.positions == program::Positions::learned);
  CHECK(with({"/model/head_dim=80"}, tiny).model.head_dim == 80);
}

TEST_CASE("a preset can be changed") {
  const Scenario scenario = with({"/model/layers=2", "/model/hidden=2048"});
  CHECK(scenario.model.layers == 2);
  CHECK(scenario.model.head_dim == 64);  // 2048 / 32
  CHECK(scenario.model.ffn == 11008);
  CHECK(refusal({"/model/preset=lama-2-7b"}).find("s.json") == std::string::npos);  // the value came from --set
  CHECK(refusal({"/model/preset=lama-2-7b"}).find("--set: /model/preset: unknown model \"lama-2-7b\"; did you mean \"llama-2-7b\"? known: falcon-7b") == 0);
}

TEST_CASE("the number of steps and the profiler's schedule") {
  const auto parts = [](const std::vector<std::string>& sets) {
    const Run run = with(sets).run;
    CHECK(run.steps == run.wait + run.warmup + run.active);
    return std::vector<int>{run.wait, run.warmup, run.active};
  };
  CHECK(parts({}) == std::vector{1, 1, 3});
  CHECK(parts({"/run/steps=1"}) == std::vector{0, 0, 1});
  CHECK(parts({"/run/steps=2"}) == std::vector{0, 1, 1});
  CHECK(parts({"/run/steps=3"}) == std::vector{1, 1, 1});
  CHECK(parts({"/run/steps=10"}) == std::vector{6, 1, 3});
  CHECK(parts({"/run/active=1"}) == std::vector{1, 1, 1});
  CHECK(refusal({"/run/steps=5", "/run/active=1"}) == "--set: /run/steps: 5 is not wait + warmup + active = 1 + 1 + 1; give only steps, or the three parts");
}

TEST_CASE("fixed-cost scenarios need neither hardware nor a whole model") {
  const Scenario scenario = with({}, kTeaching);
  CHECK(scenario.fixed_costs->block_forward.si() == 0.01);
  CHECK(scenario.fixed_costs->optimizer.si() == 0);
  CHECK(scenario.cluster.node.empty());
  CHECK(ranks(scenario) == 8);
  CHECK(step_spec(scenario).kernels.set == program::KernelSet::fixed);
  CHECK(step_spec(scenario).world.ranks() == 8);
  CHECK(step_spec(with({})).kernels.set == program::KernelSet::pytorch_eager);
  CHECK(refusal({"/fixed_costs/block_forward=10"}, kTeaching).find("--set: /fixed_costs/block_forward: 10 has no unit") == 0);
  CHECK(refusal({"/fixed_costs/block_forwards=10 ms"}, kTeaching).find("did you mean \"block_forward\"?") != std::string::npos);
}

TEST_CASE("what the chosen card or the other settings leave without effect is refused at its key") {
  CHECK(
      refusal({"/allocator/garbage_collection_threshold=0.8"}).find("--set: /allocator/garbage_collection_threshold: has no effect without memory_fraction") ==
      0);
  CHECK(refusal({"/allocator/garbage_collection_threshold=0.8", "/allocator/memory_fraction=0.9"}) == "(nothing was refused)");
  CHECK(refusal({"/cluster/gpu=a100-sxm4-80gb", "/precision/matmul=fp8-tensorwise"}) ==
        "--set: /precision/matmul: a100-sxm4-80gb has no matrix units for fp8; choose bf16 or another GPU");
  CHECK(refusal({"/cluster/gpu=v100-sxm2-32gb", "/precision/param=bf16"}) ==
        "--set: /precision/param: v100-sxm2-32gb has no matrix units for bf16; choose fp16 or another GPU");
}

TEST_CASE("refusals name the place") {
  CHECK(refusal({"/policy/shardin=FULL_SHARD"}) == "--set: /policy/shardin: unknown key; did you mean \"sharding\"?");
  CHECK(refusal({"/polcy/sharding=FULL_SHARD"}) == "--set: /polcy: unknown key; did you mean \"policy\"?");
  CHECK(refusal({"/policy/sharding=FULLSHARD"}).find("--set: /policy/sharding: unknown value \"FULLSHARD\"; did you mean \"FULL_SHARD\"?") == 0);
  CHECK(refusal({"/allocator/max_split_size=512"}).find("--set: /allocator/max_split_size: 512 has no unit") == 0);
  CHECK(refusal({"/allocator/device_memory=-1 GiB"}).find("is negative") != std::string::npos);
  CHECK(refusal({"/batch/micro_batch=NaN"}) == "--set: /batch/micro_batch: expected a whole number, found a text");
  CHECK(refusal({"/batch/micro_batch=1e30"}) == "--set: /batch/micro_batch: 1e+30 is out of range; must be from 1 to 65536");
  CHECK(refusal({"/batch/micro_batch=0"}) == "--set: /batch/micro_batch: 0 is out of range; must be from 1 to 65536");
  CHECK(refusal({"/cluster/gpus_per_node=0"}) == "--set: /cluster/gpus_per_node: 0 is out of range; must be from 1 to 1024");
  CHECK(refusal({"/cluster/nodes=-4"}).find("--set: /cluster/nodes: -4 is out of range") == 0);
  CHECK(refusal({"/cluster/gpu=b300"}).find("--set: /cluster/gpu: unknown GPU \"b300\"") == 0);
  CHECK(refusal({"/cluster/node=dgx-a10"}).find("--set: /cluster/node: unknown cluster node \"dgx-a10\"; did you mean dgx-a100?") == 0);
  CHECK(refusal({"/model/heads=33"}) == "--set: /model/heads: 33 does not divide hidden = 4096; change heads or hidden, or give head_dim");
  CHECK(refusal({"/model/kv_heads=5"}) == "--set: /model/kv_heads: 5 does not divide heads = 32");
  CHECK(refusal({"/model/layers=3.7"}) == "--set: /model/layers: 3.7 is not a whole number");
  CHECK(refusal({"/model/experts=8"}) == "--set: /model/experts: expected an object, found a number");
  CHECK(refusal({"/model/experts/count=8"}).find("--set: /model/experts/count: ") != 0);  // what is missing is the other key
  CHECK(refusal({"/model/experts/count=8"}).find("/model/experts/active: must be from 1 to the count of experts, 8") != std::string::npos);
  CHECK(refusal({"/model/sliding_window=100", "/kernels/attention=efficient"}).find("--set: /kernels/attention: has no sliding window, which the model has") ==
        0);
  CHECK(refusal({"/policy/blocks_per_unit=33"}) == "--set: /policy/blocks_per_unit: is above layers = 32");
  CHECK(refusal({"/allocator/max_split_size=20 MiB"}).find("must be more than 20 MiB") != std::string::npos);
  CHECK(refusal({"/allocator/roundup_power2_divisions=3"}).find("3 is not a power of two") != std::string::npos);
  CHECK(refusal({"/model/preset=gpt2-xl"}) == "s.json: /batch/seq_len: 4096 is more than the 1024 learned positions of the model");
  CHECK(refusal({"/schema=stepcast.scenario/9"}) == "--set: /schema: this program reads \"stepcast.scenario/1\"");
}

TEST_CASE("what is missing is named where it should be") {
  CHECK(refusal({}, R"({"model": {"preset": "mpt-7b"}, "cluster": {"node": "p4d", "nodes": 1}})") == "s.json: /batch: is missing");
  CHECK(refusal({}, R"({"model": {"preset": "mpt-7b"}, "cluster": {"nodes": 1}, "batch": {}})") == "s.json: /batch/seq_len: is missing");
  CHECK(refusal({"/batch=null"}) == "--set: /batch: is missing");  // --set took it away
  CHECK(refusal({"/batch/seq_len=null"}) == "--set: /batch/seq_len: is missing");
  CHECK(refusal({"/model/preset=null"}) == "s.json: /model/hidden: is missing; give a preset, or every size of the model");
  CHECK(refusal({"/cluster/node=null"}) == "--set: /cluster/node: is missing; name a node profile, for example \"dgx-a100\"");
  CHECK(refusal({}, "{}") == "s.json: /model: is missing");
  CHECK(refusal({}, "[]") == "s.json: expected an object, found an array");
  CHECK(refusal({}, R"({"model": null})") == "s.json: /model: expected an object, found null");
}

TEST_CASE("sizes whose products would overflow are refused") {
  CHECK(refusal({"/batch/micro_batch=65536"}).find("micro_batch * seq_len is above") != std::string::npos);
  CHECK(refusal({"/model/layers=4096", "/batch/grad_accum=4096"}).find("layers * grad_accum is above") != std::string::npos);
  CHECK(refusal({"/run/active=9000", "/run/wait=0"}).find("too much to trace") != std::string::npos);
  CHECK(refusal({"/cluster/nodes=65536"}).find("more than 65536 ranks") != std::string::npos);
  CHECK(refusal({"/cluster/nodes=1000", "/run/ranks=explicit"}).find("8000 explicit ranks are above the limit of 4096") != std::string::npos);
  CHECK(refusal({"/model/heads=1", "/model/hidden=262144"}).find("/model/heads: makes heads of 262144 elements") != std::string::npos);
  CHECK(refusal({"/batch/seq_len=4194304", "/kernels/attention=unfused", "/model/heads=4096"}).find("attention scores") != std::string::npos);
}

TEST_CASE("settings of ranks that differ are refused where they would do nothing or can't be") {
  const auto refused = [](const std::vector<std::string>& sets, const char* words) {
    CHECK_MESSAGE(refusal(sets).find(words) != std::string::npos, refusal(sets));
  };
  refused({"/run/jitter/kernel=0.1"}, "/run/ranks: \"folded\" lets one rank stand for all, and random draws differ from rank to rank");
  refused({"/loader/batch_time=1 s", "/loader/batch_time_spread=0.1"}, "/run/ranks: ");
  refused({"/host/gc_period=1 s", "/host/gc_pause=0.1 s"}, "/run/ranks: ");
  refused({"/run/slow_ranks=[{\"rank\": 0}]"}, "/run/slow_ranks makes some slower");
  refused({"/run/ranks=explicit", "/run/slow_ranks=[{\"rank\": 32}]"}, "/run/slow_ranks: rank 32 is not among the 32 ranks");
  refused({"/run/ranks=explicit", "/run/slow_ranks=[{\"rank\": 1}, {\"rank\": 1}]"}, "names rank 1 twice");
  refused({"/run/ranks=explicit", "/run/slow_ranks=[{\"compute_scale\": 2}]"}, "/run/slow_ranks/0/rank");
  refused({"/run/ranks=explicit", "/run/slow_ranks=[{\"rank\": 1, \"compute_scal\": 2}]"}, "did you mean \"compute_scale\"");
  refused({"/run/ranks=explicit", "/cluster/nodes=1", "/run/slow_ranks=[{\"rank\": 1, \"nic_scale\": 2}]"}, "nic_scale has no effect");
  refused({"/run/traced_ranks=2"}, "/run/traced_ranks: has no effect: one folded rank stands for all");
  refused({"/run/ranks=explicit", "/run/traced_ranks=33"}, "is more than the 32 ranks");
  refused({"/run/ranks=explicit", "/run/traced_ranks=32", "/run/active=900"}, "9 ranks fit");
  CHECK(traced_ranks(with({})) == 1);
  CHECK(traced_ranks(with({"/run/ranks=explicit"})) == 8);
  CHECK(traced_ranks(with({"/run/ranks=explicit", "/cluster/nodes=1", "/cluster/gpus_per_node=4"})) == 4);
  CHECK(traced_ranks(with({"/run/ranks=explicit", "/run/traced_ranks=32"})) == 32);
  CHECK(traced_ranks(with({"/run/ranks=explicit", "/run/steps=5000", "/run/wait=0", "/run/warmup=0", "/run/active=5000"})) == 1);
  refused({"/loader/batch_time_spread=0.1"}, "/loader/batch_time_spread: spreads a batch time of zero");
  refused({"/host/gc_period=1 s"}, "/host/gc_pause: is missing");
  refused({"/host/gc_pause=1 s"}, "/host/gc_period: is missing");
  refused({"/host/gc_pause=1 s", "/host/gc_period=1 s"}, "/host/gc_pause: must be below /host/gc_period");
  refused({"/host/gc_pause=1 ps", "/host/gc_period=1 us", "/host/gc_synchronised=true"}, "/host/gc_period: must be at least 1 ms");
  refused({"/host/cuda_device_max_connections=4"}, "between 2 and 7 is not supported yet");
  refused({"/host/gc_synchronised=true"}, "has no collections to synchronise");
  refused({"/fixed_costs={}", "/loader/batch_time=1 s"}, "/loader: has no effect on fixed costs");
  refused({"/fixed_costs={}", "/run/ranks=explicit", "/run/jitter/host=0.1"}, "/run/jitter: does not go with fixed costs");
}

TEST_CASE("what is not supported yet is refused, never ignored") {
  const std::vector<std::string> future = {"/policy/tensor_parallel=2", "/policy/pipeline_parallel=2", "/precision/param=fp8"};
  for (const std::string& set : future) {
    CAPTURE(set);
    CHECK(refusal({set}).find("not supported yet") != std::string::npos);
    CHECK(refusal({set}).find("--set: " + set.substr(0, set.find('='))) == 0);
  }
}

TEST_CASE("built-in scenarios all read") {
  REQUIRE_FALSE(scenario_names().empty());
  for (const std::string& name : scenario_names()) {
    CAPTURE(name);
    const Scenario scenario = read_scenario(name);
    CHECK_FALSE(scenario.name.empty());
    CHECK_FALSE(scenario.why.empty());
    CHECK(read_scenario_text(to_json_text(scenario), "again.json") == scenario);
  }
  const Scenario baseline = read_scenario("7b-32xa100");
  CHECK(program::parameters(baseline.model) == 6738415616);
  CHECK(ranks(baseline) == 32);
  CHECK(baseline.batch.micro_batch == 2);
  CHECK_THROWS_WITH_AS(read_scenario("7b-32xa10"), "scenario: no scenario \"7b-32xa10\"; did you mean the built-in \"7b-32xa100\"?", InputError);
}
