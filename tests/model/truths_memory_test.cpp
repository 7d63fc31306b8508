// What practitioners of sharded training agree on, about memory: the allocator, the rate limiter, fragmentation, logits, recomputation. Each case states it in its name; sizes
// are those of public reports, with room for configurations that the reports do not give in full. See also behaviours_test.cpp and memory_points_test.cpp.
#include <doctest/doctest.h>

#include "hw_models/profiles.hpp"
#include "tests/support/allocator_fixture.hpp"
#include "tests/support/truths.hpp"

using namespace stepcast;
using namespace stepcast::test;

namespace {

/// Llama-3-8B on one node of four A100-80GB, as Hugging Face and accelerate run it, at a given micro-batch: near the memory limit from seven sequences on.
Sets near_the_limit(int micro_batch) {
  return with({"/model/preset=llama-3-8b", "/cluster/nodes=1", "/cluster/gpus_per_node=4", "/recompute/mode=full", "/recompute/reentrant=true",
               "/recompute/nesting=outside", "/kernels/loss=fused_fp32", "/kernels/fused_norm=true", "/kernels/expand_kv=false", "/run/steps=5"},
              {"/batch/micro_batch=" + std::to_string(micro_batch)});
}

/// A GPT of 7B with 8 sequences of 2048 per GPU on 16 A100-80GB: the limiter decides whether it fits without retries.
const Sets kGpt7b = {"/model/preset=mpt-7b", "/cluster/nodes=2", "/batch/micro_batch=8", "/batch/seq_len=2048", "/kernels/loss=fused", "/run/steps=6"};

}  // namespace

TEST_CASE("allocator: throughput over the micro-batch has a maximum inside; past the point where retries recur it falls, before memory runs out") {
  const auto best = report_of(near_the_limit(6)), beyond = report_of(near_the_limit(8));
  CHECK(best.tokens_per_s_per_gpu > report_of(near_the_limit(4)).tokens_per_s_per_gpu);
  CHECK(best.retries_per_step.back() == 0);
  CHECK(beyond.retries_per_step.back() > 0);
  CHECK(beyond.tokens_per_s_per_gpu < 0.95 * best.tokens_per_s_per_gpu);  // reports: 20 to 30 % below the best
  CHECK(beyond.tokens_per_s_per_gpu > 0.6 * best.tokens_per_s_per_gpu);
  CHECK(report_of(near_the_limit(12)).outcome == "out_of_memory");
}

TEST_CASE("rate limiter: near the limit it removes recurring retries and shortens the step (7.3 to 5.0 s)") {
  const auto off = report_of(with(kGpt7b, {"/policy/limit_all_gathers=false"})), on = report_of(kGpt7b);
  CHECK(off.retries_per_step.back() > 0);
  CHECK(on.num_alloc_retries == 0);
  CHECK(on.step_time_s < 0.8 * off.step_time_s);
  CHECK(on.step_time_s > 0.5 * off.step_time_s);
}

TEST_CASE("rate limiter: far from the limit it changes memory, from all units to a few, and the step by at most 5 %") {
  const Sets small = {"/model/layers=24", "/batch/micro_batch=1", "/batch/seq_len=2048", "/recompute/mode=full"};
  const auto on = report_of(small), off = report_of(with(small, {"/policy/limit_all_gathers=false"}));
  CHECK(on.step_time_s == doctest::Approx(off.step_time_s).epsilon(0.05));
  CHECK(static_cast<double>(on.peak_active_bytes) < 0.6 * static_cast<double>(off.peak_active_bytes));
}

TEST_CASE(
    "rate limiter: two all-gathers ahead are enough, more give memory and no speed; its wait costs at most 0.3 ms a unit where gathers are on the critical "
    "path") {
  // Reports: no gain from other depths than 2; 235 us from the end of a wait to the next all-gather. After the first step the limiter lets three units be there, so the wait
  // ends before the network runs dry and the forecast shows none of it.
  for (const Sets& bound : {Sets{"/cluster/nics_per_node=1", "/batch/micro_batch=1"}, Sets{"/cluster/nics_per_node=2", "/batch/micro_batch=1"}}) {
    const auto on = report_of(bound), off = report_of(with(bound, {"/policy/limit_all_gathers=false"}));
    CHECK(on.step_time_s < off.step_time_s + 2 * 33 * 0.3e-3);
    CHECK(on.step_time_s < 1.005 * off.step_time_s);
    CHECK(static_cast<double>(off.peak_active_bytes) > 1.25 * static_cast<double>(on.peak_active_bytes));
  }
}

TEST_CASE("memory has three levels: allocated, active (with what streams still use), reserved") {
  const auto r = report_of(
      {"/model/preset=llama-3-70b", "/model/vocab=32000", "/cluster/nodes=2", "/batch/micro_batch=1", "/precision/master=bf16", "/recompute/mode=full"});
  CHECK(r.peak_allocated_bytes < r.peak_active_bytes);
  CHECK(r.peak_active_bytes < r.peak_reserved_bytes);
  // A 70B in pure bf16 on 16 GPUs was read at 42, 59 and 63 GB.
  CHECK(static_cast<double>(r.peak_allocated_bytes) / 1e9 == doctest::Approx(42).epsilon(0.1));
  CHECK(static_cast<double>(r.peak_active_bytes) / 1e9 == doctest::Approx(59).epsilon(0.1));
  CHECK(static_cast<double>(r.peak_reserved_bytes) / 1e9 == doctest::Approx(63).epsilon(0.1));
}

TEST_CASE("memory: 1.3 to 2.9 GiB of each GPU lie outside PyTorch's pool") {
  for (const char* gpu : {"a100-sxm4-40gb", "a100-sxm4-80gb", "h100-sxm5-80gb"}) {
    const double gibibytes = hw::gpu_profile(gpu).constants.at("memory_outside_pool").value / (1 << 30);
    CHECK(gibibytes > 1.3);
    CHECK(gibibytes < 2.9);
  }
}

// pytorch/pytorch#193400, 100 cycles of loading and unloading on a card of 16 GiB: 220 to 14,060 MiB reserved with both settings, below 500 MiB with either alone.
TEST_CASE("fragmentation: expandable segments and a split limit together leak reserved memory, either alone does not") {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  const auto reserved_after = [](int cycles, bool expandable, bool split_limit) {
    memory::Settings settings;
    settings.expandable_segments = expandable;
    if (split_limit) settings.max_split_size = 128 * kMiB;
    HandAllocator hand(16384 * kMiB, settings);
    for (int cycle = 0; cycle < cycles; ++cycle) {
      std::vector<memory::Outcome> loaded;
      for (int tensor = 0; tensor < 10; ++tensor) loaded.push_back(hand.malloc(22 * kMiB));
      hand.malloc(2 * kMiB);  // stays, behind what is unloaded
      for (const memory::Outcome& outcome : loaded) hand.free(outcome);
    }
    return hand.now().reserved / kMiB;
  };
  CHECK(reserved_after(60, true, false) < 500);
  CHECK(reserved_after(60, false, true) < 500);
  CHECK(reserved_after(1, true, true) < 500);
  CHECK(reserved_after(60, true, true) > 13'000);
}

TEST_CASE("fragmentation: expandable segments bring reserved nearer to active memory; a small max_split_size trades retries for frees and mallocs") {
  const Sets fp32_reduction = {"/batch/micro_batch=1", "/precision/reduce=fp32"};
  const auto fixed = report_of(fp32_reduction), expandable = report_of(with(fp32_reduction, {"/allocator/expandable_segments=true"}));
  CHECK(expandable.peak_reserved_bytes - expandable.peak_active_bytes < fixed.peak_reserved_bytes - fixed.peak_active_bytes);
  const auto full = report_of(near_the_limit(8)), pages = report_of(with(near_the_limit(8), {"/allocator/expandable_segments=true"})),
             pieces = report_of(with(near_the_limit(8), {"/allocator/max_split_size=64 MiB"}));
  CHECK(pages.retries_per_step.back() < full.retries_per_step.back());
  CHECK(pages.step_time_s < full.step_time_s);
  CHECK(pieces.num_device_frees > 2 * full.num_device_frees);
}

TEST_CASE("resharding: parameters kept after the forward cost P (1 - 1/N) of memory and save the backward's gathers") {
  const Sets fsdp2 = {"/policy/framework=fsdp2", "/cluster/nodes=1", "/batch/micro_batch=1", "/recompute/mode=full"};
  const auto always = report_of(fsdp2), never = report_of(with(fsdp2, {"/policy/reshard_after_forward=false"}));
  const double blocks = 2.0 * 32 * 202383360 * 7 / 8;  // bf16, on 8 GPUs; two to three of them are there in either case
  CHECK(static_cast<double>(never.peak_allocated_bytes - always.peak_allocated_bytes) == doctest::Approx(blocks).epsilon(0.15));
  CHECK(never.comm_s < 0.75 * always.comm_s);
  CHECK(never.step_time_s <= always.step_time_s);
}

TEST_CASE("recomputation: the same tokens take 15 to 25 % longer, memory falls, HFU is about 4/3 of MFU") {
  const auto none = report_of({}), full = report_of({"/recompute/mode=full", "/recompute/early_stop=false"});
  const double speed = full.tokens_per_s_per_gpu / none.tokens_per_s_per_gpu;
  CHECK(speed > 0.75);
  CHECK(speed < 0.85);
  CHECK(static_cast<double>(full.peak_allocated_bytes) < 0.67 * static_cast<double>(none.peak_allocated_bytes));
  CHECK(full.hfu / full.mfu == doctest::Approx(4.0 / 3).epsilon(0.02));
  CHECK(none.hfu == none.mfu);
}

namespace {

/// torchtune's Llama-3.2-3B, 2 sequences of 4096 in bf16 all through on one A100 with the fused optimizer (pytorch/torchtune, README.md).
Sets torchtune_3b(const Sets& more) {
  return with({"/model/hidden=3072", "/model/layers=28", "/model/heads=24", "/model/kv_heads=8", "/model/head_dim=128", "/model/ffn=8192",
               "/model/vocab=128256", "/model/tied_embeddings=true", "/cluster/nodes=1", "/cluster/gpus_per_node=1", "/batch/micro_batch=2",
               "/precision/master=bf16", "/optimizer/implementation=fused", "/optimizer/clip_grad_norm=false"},
              more);
}

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

}  // namespace

TEST_CASE("recomputation and compile on one GPU: memory falls by 33 to 42 % and by 5 to 15 %; the totals of a public run") {
  const Sets compiled = {"/kernels/set=pytorch-compile"}, chunked = {"/kernels/loss=chunked"}, full = {"/recompute/mode=full"};
  const auto eager = report_of(torchtune_3b({})), fast = report_of(torchtune_3b(compiled)), lean = report_of(torchtune_3b(with(compiled, chunked))),
             small = report_of(torchtune_3b(with(with(compiled, chunked), full)));
  // Active memory as printed: 60.0, 51.0, 42.9, 24.9 GiB. Its chunked loss keeps the logits in bf16 (2 GiB), this one keeps none.
  CHECK(gib(eager.peak_active_bytes) == doctest::Approx(60.0).epsilon(0.02));
  CHECK(gib(fast.peak_active_bytes) == doctest::Approx(51.0).epsilon(0.02));
  CHECK(gib(lean.peak_active_bytes) == doctest::Approx(42.9 - 2.0).epsilon(0.03));
  CHECK(gib(small.peak_active_bytes) == doctest::Approx(24.9).epsilon(0.02));
  const double freed = 1 - gib(small.peak_active_bytes) / gib(lean.peak_active_bytes);
  CHECK(freed > 0.33);
  CHECK(freed < 0.44);
  const double saved = 1 - gib(fast.peak_active_bytes) / gib(eager.peak_active_bytes);
  CHECK(saved > 0.05);
  CHECK(saved < 0.17);
  CHECK(small.tokens_per_s_per_gpu / lean.tokens_per_s_per_gpu == doctest::Approx(0.786).epsilon(0.06));  // 9174 to 7210 tokens/s
}

TEST_CASE("recomputation: only a reentrant checkpoint around the unit gathers once more") {
  const Sets full = {"/recompute/mode=full"};
  const double inside = report_of(full).comm_s;
  CHECK(report_of(with(full, {"/recompute/nesting=outside"})).comm_s == doctest::Approx(inside).epsilon(0.01));
  CHECK(report_of(with(full, {"/recompute/nesting=outside", "/recompute/reentrant=true"})).comm_s > 1.25 * inside);
}

TEST_CASE("recomputation: what it frees, spent on batch, pays only where the batch without it was small") {
  const Sets mpt = {"/model/preset=mpt-7b", "/cluster/nodes=1", "/batch/seq_len=2048", "/kernels/loss=fused"};
  CHECK(report_of(with(mpt, {"/recompute/mode=full", "/batch/micro_batch=32"})).tokens_per_s_per_gpu <
        report_of(with(mpt, {"/batch/micro_batch=6"})).tokens_per_s_per_gpu);
  const Sets network = {"/cluster/node=a100-400g", "/batch/seq_len=2048"};
  CHECK(report_of(with(network, {"/recompute/mode=full", "/batch/micro_batch=8"})).tokens_per_s_per_gpu >
        1.1 * report_of(with(network, {"/batch/micro_batch=1"})).tokens_per_s_per_gpu);
}

TEST_CASE("logits and their gradient add tokens x vocabulary x 2 to 8 bytes; without them 7.3 GiB less at 8192 x 128,256, for no time") {
  // pytorch/torchtitan#996: 49.58 to 42.26 GiB reserved, 5957 to 5953 tokens/s
  const Sets llama = {"/model/preset=llama-3-8b",
                      "/cluster/node=dgx-h100",
                      "/cluster/gpu=null",
                      "/cluster/nodes=1",
                      "/batch/micro_batch=1",
                      "/batch/seq_len=8192",
                      "/recompute/mode=per_op",
                      "/recompute/ops=all_but_every_second_matmul",
                      "/policy/wrap=embedding_and_head",
                      "/policy/framework=fsdp2",
                      "/precision/reduce=fp32",
                      "/kernels/fused_norm=true",
                      "/kernels/rope=complex",
                      "/optimizer/implementation=fused"};
  const auto whole = report_of(llama), chunked = report_of(with(llama, {"/kernels/loss=chunked"}));
  CHECK(gib(whole.peak_reserved_bytes) == doctest::Approx(49.58).epsilon(0.03));
  const double saved = gib(whole.peak_reserved_bytes - chunked.peak_reserved_bytes), logits = 8192.0 * 128256 / (1 << 30);
  CHECK(gib(chunked.peak_reserved_bytes) + 2 * logits == doctest::Approx(42.26).epsilon(0.03));  // its chunks are of the loss: the logits stay in bf16
  CHECK(saved > 2 * logits);
  CHECK(saved < 12 * logits);  // and with the copy in fp32 and its gradient
  CHECK(chunked.step_time_s == doctest::Approx(whole.step_time_s).epsilon(0.02));
}
