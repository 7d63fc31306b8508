// What practitioners of sharded training agree on, about time: prefetch, sharding, scaling, accumulation, compilers, attention, wrapping, contention, matrix shapes, metrics.
// Each case states it in its name; sizes are those of public reports, with room for configurations that the reports do not give in full. See also behaviours_test.cpp.
#include <doctest/doctest.h>

#include <algorithm>

#include "hw_models/cost_model.hpp"
#include "hw_models/profiles.hpp"
#include "tests/support/truths.hpp"

using namespace stepcast;
using namespace stepcast::test;

namespace {

double tokens(const Sets& sets) { return report_of(sets).tokens_per_s_per_gpu; }

/// GPT-2 XL's width with 12 layers in fp32 on cards of one node: small enough for a copy on each.
Sets small_in_fp32(const char* node, int gpus, const char* framework) {
  return {"/model/preset=gpt2-xl",
          "/model/layers=12",
          std::string("/cluster/node=") + node,
          "/cluster/gpu=null",
          "/cluster/nodes=1",
          "/cluster/gpus_per_node=" + std::to_string(gpus),
          "/batch/micro_batch=4",
          "/batch/seq_len=1024",
          std::string("/policy/framework=") + framework,
          "/precision/param=fp32",
          "/precision/reduce=fp32",
          "/kernels/attention=efficient",
          "/optimizer/implementation=fused",
          "/optimizer/clip_grad_norm=false"};
}

/// OLMo 1B in bf16 all through, 2 sequences of 2048 in each of 16 micro-batches: DDP reduces once a step, FSDP gathers in every micro-batch.
double fsdp_over_ddp(const char* node, int gpus, const Sets& more) {
  const Sets olmo = {"/model/hidden=2048",
                     "/model/layers=16",
                     "/model/heads=16",
                     "/model/kv_heads=16",
                     "/model/head_dim=128",
                     "/model/ffn=8192",
                     "/model/vocab=50304",
                     std::string("/cluster/node=") + node,
                     "/cluster/gpu=null",
                     "/cluster/nodes=1",
                     "/cluster/gpus_per_node=" + std::to_string(gpus),
                     "/batch/micro_batch=2",
                     "/batch/seq_len=2048",
                     "/batch/grad_accum=16",
                     "/kernels/loss=fused",
                     "/optimizer/implementation=fused",
                     "/precision/master=bf16",
                     "/precision/reduce=bf16"};
  return tokens(with(olmo, more)) / tokens(with(olmo, {"/policy/framework=ddp", "/policy/no_sync=true"}));
}

double gemm_rate(std::int64_t m, std::int64_t n, std::int64_t k) {
  const hw::CostModel model(hw::gpu_profile("a100-sxm4-80gb"), hw::make_cluster("dgx-a100", 1));
  const hw::KernelShape shape{.kind = hw::KernelKind::gemm, .dtype = hw::Dtype::bf16, .batch = 1, .m = m, .n = n, .k = k};
  return hw::executed_flops(shape).si() / model.kernel(shape).alone.in(second);
}

}  // namespace

TEST_CASE("prefetch: where communication binds the backward, PRE <= POST <= NONE in time, and PRE holds about one unit more") {
  const Sets bound = {"/cluster/nics_per_node=2", "/batch/micro_batch=1"};
  const auto pre = report_of(bound), post = report_of(with(bound, {"/policy/backward_prefetch=BACKWARD_POST"})),
             none = report_of(with(bound, {"/policy/backward_prefetch=NONE"}));
  CHECK(pre.step_time_s <= post.step_time_s * 1.001);
  CHECK(post.step_time_s < none.step_time_s);
  CHECK(none.step_time_s > 1.02 * pre.step_time_s);
  CHECK(static_cast<double>(pre.peak_allocated_bytes - none.peak_allocated_bytes) == doctest::Approx(2.0 * 202383360).epsilon(0.01));
}

TEST_CASE("prefetch and wrapping: one unit for the whole model overlaps nothing; units of blocks lift the overlap and cut the step by a fifth") {
  const Sets slow = {"/cluster/nics_per_node=1", "/recompute/mode=full"};
  const auto whole = report_of(with(slow, {"/policy/wrap=model"})), blocks = report_of(slow);
  CHECK(whole.overlap_fraction < 0.10);
  CHECK(blocks.overlap_fraction > 0.6);
  const double cut = 1 - blocks.step_time_s / whole.step_time_s;  // reports: 17 to 23 %; a small model on fast links 7 %
  CHECK(cut > 0.07);
  CHECK(cut < 0.30);
  // Where the overlap is there, asking for more of it gains less than 1 %.
  CHECK(report_of({"/policy/forward_prefetch=true"}).step_time_s == doctest::Approx(report_of({}).step_time_s).epsilon(0.01));
}

TEST_CASE("prefetch: the first gather of the forward and the last reduce-scatter of the backward stay exposed, at most a tenth of the step") {
  const auto r = report_of({});
  CHECK(r.exposed_comm_s > 0);
  CHECK(r.exposed_comm_s < 0.1 * r.step_time_s);
  CHECK(report_of({"/policy/forward_prefetch=true"}).exposed_comm_s > 0);
}

TEST_CASE("DDP: where the model fits FSDP is 10 to 40 % slower over PCIe, and equal over NVLink") {
  for (const char* node : {"a40", "l40s", "rtx-4090"}) {  // reports: 0.68 on 4 A40, 0.63 to 0.91 elsewhere
    const double blocks = fsdp_over_ddp(node, 4, {});
    CAPTURE(node);
    CHECK(blocks < 0.90);
    CHECK(blocks > 0.60);
    CHECK(fsdp_over_ddp(node, 4, {"/policy/wrap=model"}) < 0.9 * blocks);  // reports: 0.22 at worst, on a machine that is not told
  }
  CHECK(tokens(small_in_fp32("dgx-h100", 2, "fsdp1")) == doctest::Approx(tokens(small_in_fp32("dgx-h100", 2, "ddp"))).epsilon(0.015));
}

// AnswerDotAI/fsdp_qlora, benchmarks_03_2024.md: 1024 samples of 2048 tokens in 481 and 437 s.
TEST_CASE("DDP: Llama-2-7B with adapters on two RTX 4090 is a tenth faster than under FSDP") {
  const Sets lora = {"/model/preset=llama-2-7b", "/model/lora_rank=64",    "/model/lora_targets=all_linear", "/cluster/nodes=1",
                     "/cluster/gpus_per_node=2", "/cluster/gpu=null",      "/cluster/node=rtx-4090",         "/batch/seq_len=2048",
                     "/batch/micro_batch=4",     "/precision/master=bf16", "/precision/reduce=bf16",         "/recompute/mode=full"};
  CHECK(tokens(with(lora, {"/policy/framework=ddp"})) / tokens(with(lora, {"/policy/use_orig_params=true"})) == doctest::Approx(1.10).epsilon(0.04));
}

TEST_CASE("hybrid sharding: 1.3 times as fast over slow links between nodes, within a few per cent over fast ones; memory of a node's shard") {
  const Sets hybrid = {"/policy/sharding=HYBRID_SHARD"}, slow = {"/cluster/nics_per_node=1", "/batch/micro_batch=1"}, fast = {"/batch/micro_batch=1"};
  CHECK(tokens(with(slow, hybrid)) > 1.25 * tokens(slow));
  CHECK(tokens(with(fast, hybrid)) == doctest::Approx(tokens(fast)).epsilon(0.06));
  CHECK(report_of(with(fast, hybrid)).peak_allocated_bytes > report_of(fast).peak_allocated_bytes);
}

TEST_CASE("scaling: 16k tokens per GPU and RDMA lose 0 to 5 % from 1 to 16 nodes; 2k tokens at 400 Gb/s a node lose 25 to 31 %") {
  const Sets large = {"/batch/micro_batch=4", "/recompute/mode=full"};
  const double kept = tokens(with(large, {"/cluster/nodes=16"})) / tokens(with(large, {"/cluster/nodes=1"}));
  CHECK(kept > 0.95);
  CHECK(kept < 1.01);
  // Reports (0.69 and 0.75) do not say whether activations were recomputed: less work hides less of the network, more work hides more.
  const Sets small = {"/model/preset=llama-3-8b", "/cluster/node=a100-400g", "/batch/micro_batch=1", "/batch/seq_len=2048"};
  for (const char* nodes : {"/cluster/nodes=2", "/cluster/nodes=8"}) {
    const auto left = [&](const Sets& more) { return tokens(with(with(small, more), {nodes})) / tokens(with(with(small, more), {"/cluster/nodes=1"})); };
    const double none = left({}), full = left({"/recompute/mode=full"});
    CHECK(none < 0.72);
    CHECK(none > 0.63);
    CHECK(full > 0.72);
    CHECK(full < 0.80);
  }
}

TEST_CASE("scaling: more GPUs can raise the throughput of each, by the micro-batch that their memory allows") {
  const Sets model = {"/model/style=gpt",     "/model/preset=mpt-7b", "/model/hidden=8192",       "/model/layers=80",        "/model/heads=64",
                      "/model/kv_heads=64",   "/model/head_dim=128",  "/model/ffn=32768",         "/cluster/node=roce-1600", "/batch/seq_len=2048",
                      "/recompute/mode=full", "/kernels/loss=fused",  "/kernels/attention=triton"};
  const double few = tokens(with(model, {"/cluster/nodes=4", "/batch/micro_batch=2"})),
               many = tokens(with(model, {"/cluster/nodes=8", "/batch/micro_batch=8"}));
  CHECK(many > 1.02 * few);  // reports: 10 %
}

TEST_CASE("network: falling back to TCP multiplies the time of collectives by 5 to 8") {
  const Sets small = {"/batch/micro_batch=1"};
  const double ratio = report_of(with(small, {"/cluster/fabric=tcp"})).comm_s / report_of(small).comm_s;
  CHECK(ratio > 5);
  CHECK(ratio < 9);
}

TEST_CASE("accumulation: reduced in each micro-batch n (c + s), deferred n c + s") {
  const Sets slow = {"/policy/framework=ddp", "/cluster/nics_per_node=1", "/model/layers=8", "/batch/micro_batch=1", "/batch/seq_len=512"};
  const double one = report_of(slow).step_time_s, four = report_of(with(slow, {"/batch/grad_accum=4"})).step_time_s,
               deferred = report_of(with(slow, {"/batch/grad_accum=4", "/policy/no_sync=true"})).step_time_s;
  CHECK(four == doctest::Approx(4 * one).epsilon(0.15));  // the optimizer runs once
  CHECK(deferred < 0.65 * four);                          // reports: 88.8 to 54.6 s
  const double compute = report_of(with(slow, {"/cluster/nodes=1"})).compute_s;
  CHECK(deferred < 4 * compute + one);
}

TEST_CASE("accumulation under FULL_SHARD gathers all parameters again: where gathers bind, splitting a batch costs throughput") {
  const Sets slow = {"/cluster/nics_per_node=1"};
  const double ratio = tokens(with(slow, {"/batch/micro_batch=1", "/batch/grad_accum=2"})) / tokens(slow);
  CHECK(ratio < 0.9);  // reports: 0.77
  CHECK(ratio > 0.6);
}

TEST_CASE("compile: 16 to 28 % on 7B, less on 70B with recomputation; memory falls") {
  const Sets compiled = {"/kernels/set=pytorch-compile"}, seven = {"/kernels/loss=fused"};
  const double gain = tokens(with(seven, compiled)) / tokens(seven);
  CHECK(gain > 1.13);
  CHECK(gain < 1.30);
  const Sets seventy = {"/model/preset=llama-3-70b", "/kernels/loss=fused", "/batch/micro_batch=1", "/cluster/nodes=16", "/recompute/mode=full"};
  const double large = tokens(with(seventy, compiled)) / tokens(seventy);
  CHECK(large == doctest::Approx(1.11).epsilon(0.05));
  CHECK(large < gain);
  // With full recomputation 5 to 15 % of memory; without, where all that is saved counts, see the memory of a public run in truths_memory_test.cpp.
  const Sets recomputed = with(seven, {"/recompute/mode=full"});
  const auto before = report_of(recomputed), after = report_of(with(recomputed, compiled));
  CHECK(static_cast<double>(after.peak_allocated_bytes) < 0.96 * static_cast<double>(before.peak_allocated_bytes));
  CHECK(static_cast<double>(after.peak_allocated_bytes) > 0.85 * static_cast<double>(before.peak_allocated_bytes));
}

TEST_CASE("attention: what fusing it gains grows with the sequence, about twofold at 4096 for a small model; memory quadratic without, flat with") {
  const auto at = [](const char* attention, int seq_len) {
    return report_of({"/model/preset=gpt2-xl", "/model/max_positions=4096", std::string("/kernels/attention=") + attention,
                      "/batch/seq_len=" + std::to_string(seq_len), "/batch/micro_batch=" + std::to_string(4096 / seq_len)});
  };
  double before = 1.05;
  std::int64_t memory = 0;
  for (const int seq_len : {512, 1024, 4096}) {
    const auto unfused = at("unfused", seq_len), fused = at("flash2", seq_len);
    const double gain = unfused.step_time_s / fused.step_time_s;
    CHECK(gain > before);
    before = gain;
    CHECK(unfused.peak_allocated_bytes > memory);
    memory = unfused.peak_allocated_bytes;
    CHECK(fused.peak_allocated_bytes == doctest::Approx(static_cast<double>(at("flash2", 512).peak_allocated_bytes)).epsilon(0.02));
  }
  CHECK(before > 1.8);  // at 4096
  CHECK(before < 3);
}

TEST_CASE("attention: at constant tokens per GPU, throughput falls with the sequence faster than MFU") {
  const Sets mpt = {"/model/preset=mpt-7b", "/model/max_positions=65536", "/cluster/nodes=1",
                    "/recompute/mode=full", "/kernels/loss=fused",        "/kernels/attention=triton"};
  const auto at = [&](int seq_len) {
    return report_of(with(mpt, {"/batch/seq_len=" + std::to_string(seq_len), "/batch/micro_batch=" + std::to_string(65536 / seq_len)}));
  };
  const auto short_ones = at(1024), long_one = at(65536);
  CHECK(long_one.tokens_per_s_per_gpu / short_ones.tokens_per_s_per_gpu == doctest::Approx(0.23).epsilon(0.15));
  CHECK(long_one.mfu < short_ones.mfu);
  CHECK(long_one.mfu > 0.7 * short_ones.mfu);  // reports: 58 to 47 %
}

TEST_CASE("contention: kernels take longer while a gather runs beside them") {
  // Reports of single kernels say 1.75 to 2.5 times; whole steps and traces, from which the constant comes, 1.1 to 1.5 (docs/models.md, "Contention").
  const auto forward = [](const Sets& sets) {
    const auto report = report_of(with(sets, {"/model/layers=4"}));
    const auto phase = std::find_if(report.phases.begin(), report.phases.end(), [](const cli::PhaseRow& row) { return row.name == "forward"; });
    REQUIRE(phase != report.phases.end());
    return phase->compute_s;
  };
  const double alone = forward({"/policy/framework=fsdp1", "/precision/master=bf16", "/cluster/nodes=1", "/cluster/gpus_per_node=1"}),
               beside = forward({"/precision/master=bf16", "/cluster/nodes=4"});
  CHECK(beside > 1.02 * alone);
  CHECK(beside < 1.5 * alone);
}

namespace {

/// MFU of a model of 13,824 with heads of 128 against one of 14,400 with heads of 180, whose products and unfused attention are of sizes that are no multiple of 8.
double heads_of_128_gain() {
  const auto mfu = [](int hidden, int heads) {
    return report_of({"/model/preset=mpt-7b", "/model/hidden=" + std::to_string(hidden), "/model/heads=" + std::to_string(heads),
                      "/model/kv_heads=" + std::to_string(heads), "/model/head_dim=" + std::to_string(hidden / heads),
                      "/model/ffn=" + std::to_string(4 * hidden), "/model/layers=2", "/model/vocab=1024", "/cluster/nodes=1", "/cluster/gpus_per_node=1",
                      "/policy/framework=ddp", "/precision/master=bf16", "/batch/micro_batch=1", "/batch/seq_len=2048", "/kernels/loss=fused",
                      "/kernels/attention=unfused", "/kernels/set=megatron", "/optimizer/implementation=fused", "/optimizer/clip_grad_norm=false"})
        .mfu;
  };
  return mfu(13824, 108) / mfu(14400, 80);
}

}  // namespace

TEST_CASE("matrix products: sizes that fill tiles and waves, and aligned ones, are faster") {
  CHECK(gemm_rate(4096, 10944, 4096) / gemm_rate(4096, 10922, 4096) ==
        doctest::Approx(1.46).epsilon(0.03));  // as reported; as depth, in the down projection, 1.8
  CHECK(gemm_rate(2048, 13824, 13824) > gemm_rate(2048, 14400, 14400));
  CHECK(heads_of_128_gain() > 1.01);
  CHECK(heads_of_128_gain() < 1.30);
}

// Reports: 27 %, in pipelines and tensor-parallel, which is not modelled. Products alone give little of it: docs/behaviours.md, "General statements".
TEST_CASE("heads of 128 instead of 180 gain more than 5 %: not reached" * doctest::should_fail()) { CHECK(heads_of_128_gain() > 1.05); }

TEST_CASE("metrics: MFU counts all parameters, not a shard's, over the dense peak, and HFU stands beside it") {
  const auto r = report_of({"/recompute/mode=full"});
  CHECK(r.peak_flops == 312e12);
  CHECK(r.mfu_6p == doctest::Approx(6.0 * (6738415616.0 - 32000 * 4096) * r.tokens_per_s_per_gpu / 312e12).epsilon(0.01));
  CHECK(r.hfu > r.mfu);
  CHECK(report_of({"/recompute/mode=full", "/cluster/nodes=1"}).mfu == doctest::Approx(r.mfu).epsilon(0.05));  // the same on a quarter of the GPUs
}

TEST_CASE("traces: times of a stream are unions of intervals, so that parts never exceed the step") {
  const auto r = report_of({"/precision/reduce=fp32", "/batch/micro_batch=1"});  // casts and divisions run beside the backward
  CHECK(r.compute_s + r.exposed_comm_s + r.idle_s == doctest::Approx(r.step_time_s).epsilon(1e-9));
  CHECK(r.compute_s <= r.step_time_s);
  CHECK(r.comm_s <= r.step_time_s);
  // Added up, the kernels of all streams are longer than the step: a gap computed from the sum would be negative, or false.
  double sum = r.comm_s;
  for (const auto& kernel : r.kernels) sum += kernel.total_s;
  CHECK(sum > 1.2 * r.step_time_s);
}

// cornell-sysphotonics/ccl-bench: a GPU that is busy 99.6 % of the time with NCCL on 92 % of it.
TEST_CASE("traces: a GPU that is always busy may be waiting for the network") {
  const auto r = report_of({"/cluster/nics_per_node=1", "/batch/micro_batch=1"});
  CHECK(r.idle_s < 0.01 * r.step_time_s);
  CHECK(r.comm_s > 0.92 * r.step_time_s);
  CHECK(r.compute_s < 0.75 * r.step_time_s);
  CHECK(r.bound == "communication");
}
