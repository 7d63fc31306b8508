// The keys of FSDP1's policies and of recomputation in a scenario: spellings, defaults that depend on the release, and the rules between them with their places.
#include <doctest/doctest.h>

#include "hw_models/input_error.hpp"
#include "scenarios/scenario.hpp"

using namespace stepcast;
using namespace stepcast::scenarios;

namespace {

Scenario read(std::vector<std::string> sets) {
  constexpr const char* text = R"({"model": {"preset": "llama-2-7b"}, "cluster": {"node": "dgx-a100", "nodes": 4}, "batch": {"seq_len": 2048}})";
  return read_scenario_text(text, "test.json", sets);
}

std::string refusal(std::vector<std::string> sets) {
  try {
    read(std::move(sets));
  } catch (const InputError& error) { return error.what(); }
  return "accepted";
}

}  // namespace

TEST_CASE("each spelling is read, and written so that it reads again") {
  const std::vector<std::string> sets[] = {{"/policy/sharding=NO_SHARD"},
                                           {"/policy/sharding=HYBRID_SHARD", "/policy/shard_group_size=4"},
                                           {"/policy/sharding=_HYBRID_SHARD_ZERO2", "/policy/shard_group_size=node"},
                                           {"/policy/wrap=embedding_and_head"},
                                           {"/policy/wrap=model"},
                                           {"/policy/wrap=size_based", "/policy/min_unit_parameters=500000000"},
                                           {"/policy/wrap=attention_and_ffn"},
                                           {"/policy/wrap=linears"},
                                           {"/model/frozen={\"embedding\": true, \"blocks\": 4}", "/policy/use_orig_params=true"},
                                           {"/cluster/gpu=h100-sxm5-80gb", "/precision/matmul=fp8-rowwise"},
                                           {"/cluster/gpu=h100-sxm5-80gb", "/precision/matmul=fp8-blockwise"},
                                           {"/policy/release=before-2.1"},
                                           {"/policy/release=\"2.8\""},
                                           {"/recompute/mode=every_k", "/recompute/every=3"},
                                           {"/recompute/mode=share", "/recompute/share=0.7"},
                                           {"/recompute/mode=per_op", "/recompute/ops=all_but_matmul"},
                                           {"/recompute/mode=per_op", "/recompute/ops=all_but_every_second_matmul"},
                                           {"/recompute/mode=full", "/recompute/nesting=outside", "/recompute/reentrant=true"},
                                           {"/kernels/loss=chunked"},
                                           {"/kernels/loss=fused_fp32"},
                                           {"/kernels/keep_logits=true"},
                                           {"/kernels/keep_logits=true", "/kernels/train_metrics=2"},
                                           {"/model/dropout/hidden=true"},
                                           {"/kernels/rope=complex"},
                                           {"/host/sync_each_phase=true"},
                                           {"/kernels/expand_kv=false", "/model/kv_heads=8"},
                                           {"/optimizer/zero_grad_set_to_none=false"},
                                           {"/policy/framework=fsdp2", "/optimizer/clip_grad_norm=false", "/optimizer/in_backward=true"}};
  const Scenario plain = read({});
  for (const auto& set : sets) {
    CAPTURE(set.back());
    const Scenario scenario = read(set);
    CHECK_FALSE(scenario == plain);
    CHECK(read_scenario_text(to_json_text(scenario), "again.json") == scenario);
  }
}

TEST_CASE("the rate limiter is on from 2.1 on and off before, unless it is set") {
  CHECK(read({}).policy.limit_all_gathers);
  CHECK(read({"/policy/release=\"2.8\""}).policy.limit_all_gathers);
  CHECK_FALSE(read({"/policy/release=before-2.1"}).policy.limit_all_gathers);
  CHECK(read({"/policy/release=before-2.1", "/policy/limit_all_gathers=true"}).policy.limit_all_gathers);
}

TEST_CASE("settings that contradict each other are refused at their place, with a hint") {
  CHECK(refusal({"/policy/shard_group_size=4"}).find("--set: /policy/shard_group_size: belongs to hybrid sharding") == 0);
  CHECK(refusal({"/policy/sharding=HYBRID_SHARD", "/policy/shard_group_size=3"}).find("3 neither divides the 8 ranks of a node") != std::string::npos);
  CHECK(refusal({"/policy/sharding=HYBRID_SHARD", "/cluster/gpus_per_node=1"}).find("/policy/shard_group_size: a shard group of one rank") !=
        std::string::npos);
  CHECK(refusal({"/policy/wrap=embedding_and_head", "/model/tied_embeddings=true"}).find("--set: /policy/wrap: ") == 0);
  CHECK(refusal({"/recompute/mode=per_op", "/recompute/ops=attention"}).find("--set: /recompute/ops: ") == 0);
  CHECK(refusal({"/recompute/mode=per_op", "/kernels/attention=unfused"}).find("/recompute/ops: ") != std::string::npos);
  CHECK(refusal({"/recompute/mode=full", "/recompute/nesting=outside", "/policy/blocks_per_unit=2"}).find("--set: /recompute/nesting: ") == 0);
  CHECK(refusal({"/recompute/mode=full", "/recompute/nesting=outside", "/policy/release=before-2.1"}).find("fails before release 2.1") != std::string::npos);
  CHECK(refusal({"/kernels/loss=chunked", "/model/vocab=16000000", "/model/hidden=1024", "/model/heads=32", "/model/head_dim=32"}).find("/kernels/loss: ") !=
        std::string::npos);
  CHECK(refusal({"/kernels/loss=chunked", "/kernels/keep_logits=true"}).find("--set: /kernels/keep_logits: a chunked loss makes no logits") == 0);
  CHECK(refusal({"/kernels/train_metrics=1"}).find("--set: /kernels/train_metrics: are taken of logits that are kept") == 0);
  CHECK(refusal({"/kernels/rope=fused", "/model/positions=none"}).find("--set: /kernels/rope: the model has no rotary positions") == 0);
  CHECK(refusal({"/kernels/rope=fused", "/kernels/set=pytorch-compile"}).find("--set: /kernels/rope: is for eager blocks") == 0);
  CHECK(refusal({"/kernels/set=megatron"}).find("--set: /kernels/set: \"megatron\" is known for GPT blocks") == 0);
  CHECK(refusal({"/model/dropout/attention=true"}).find("--set: /model/dropout/attention: what it costs inside fused attention is not known") == 0);
  CHECK(refusal({"/model/dropout/hidden=true", "/kernels/set=pytorch-compile"}).find("--set: /model/dropout/hidden: what a compiled graph") == 0);
  CHECK(refusal({"/model/dropout/hidden=true", "/model/layout=parallel"}).find("is known for the layout") != std::string::npos);
  CHECK(refusal({"/kernels/expand_kv=false"}).find("--set: /kernels/expand_kv: the model has a key and a value for every query head") == 0);
  CHECK(refusal({"/kernels/expand_kv=false", "/model/kv_heads=8", "/kernels/attention=unfused"}).find("/kernels/expand_kv: unfused attention") !=
        std::string::npos);
  CHECK(refusal({"/kernels/expand_kv=false", "/model/preset=mpt-7b"}).find("/kernels/expand_kv: a gpt block never") != std::string::npos);
  CHECK(refusal({"/recompute/every=0"}).find("/recompute/every: ") != std::string::npos);
  CHECK(refusal({"/policy/min_unit_parameters=0"}).find("/policy/min_unit_parameters: ") != std::string::npos);
  CHECK(refusal({"/policy/release=2.0"}).find("/policy/release: ") != std::string::npos);
}
