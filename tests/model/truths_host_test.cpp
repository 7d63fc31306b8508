// What practitioners measured about hosts, data loaders and stragglers, as statements about forecasts. Each case names its source; sizes are the published ones with the
// tolerance that the difference between their machine and the scenario asks for.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/support/forecast.hpp"

using namespace stepcast;
using test::forecast;

namespace {

using Sets = std::vector<std::string>;

double step_s(const std::string& scenario, Sets sets, const Sets& more = {}) {
  sets.insert(sets.end(), more.begin(), more.end());
  const auto report = forecast(scenario, sets).report;
  REQUIRE(report.outcome == "ok");
  return report.step_time_s;
}

/// One GPU and a small model, as benchmarks of launches have.
const Sets kOneGpu = {"/cluster/nodes=1",
                      "/cluster/gpus_per_node=1",
                      "/policy/sharding=NO_SHARD",
                      "/model/hidden=512",
                      "/model/heads=8",
                      "/model/kv_heads=8",
                      "/model/head_dim=64",
                      "/model/ffn=1376",
                      "/model/layers=24",
                      "/model/vocab=8192",
                      "/optimizer/implementation=fused"};

}  // namespace

// pytorch/pytorch#173680: FSDP2's pre-forward takes about 1 ms per module, half of a step of many small modules; 18 % faster with those unwrapped.
TEST_CASE("each FSDP2 unit costs the host about a millisecond: small modules in fewer units make a host-bound step shorter") {
  const Sets small = {"/policy/framework=fsdp2", "/cluster/nodes=1", "/model/hidden=512",  "/model/heads=8",      "/model/kv_heads=8",
                      "/model/ffn=1376",         "/model/layers=64", "/batch/seq_len=256", "/batch/micro_batch=1"};
  const double each = step_s("7b-32xa100", small), eighth = step_s("7b-32xa100", small, {"/policy/blocks_per_unit=8"});
  CHECK(forecast("7b-32xa100", small).report.bound == "host");
  CHECK(eighth < 0.9 * each);
  const double per_unit = (each - eighth) / (64 - 8);
  CHECK(per_unit > 0.5e-3);
  CHECK(per_unit < 3e-3);
}

// pytorch/benchmark#706 (ResNet-50, V100): 89.0, 92.9, 93.7 ms at batch 1, 2, 4 eagerly, 50.2, 56.1, 71.5 as a CUDA graph; 105 ms either way at batch 8, 561 and 562 at 64.
// A graph replays a node in a tenth of a launch (ahrefs/ocannl#488: 0.58 for 6.4 us).
TEST_CASE("below a batch threshold time is flat in the batch and cheap launches help; above it they gain nothing") {
  const auto time = [&](const std::string& batch, const std::string& scale) {
    Sets sets = kOneGpu;
    sets.insert(sets.end(), {"/batch/seq_len=128", "/batch/micro_batch=" + batch, "/host/scale=" + scale});
    return step_s("7b-32xa100", sets);
  };
  CHECK(time("2", "1") == doctest::Approx(time("1", "1")).epsilon(0.05));
  CHECK(time("1", "0.1") < 0.66 * time("1", "1"));
  CHECK(time("64", "0.1") == doctest::Approx(time("64", "1")).epsilon(0.02));
  CHECK(time("128", "1") > 1.8 * time("64", "1"));
}

// A throttled GPU carries its clock ratio to all (jingchaozhang.github.io); BLOOM-176B: one slow GPU in 48 nodes, 149 -> 140 TFLOPS.
TEST_CASE("the step follows the slowest rank: the ratio of a compute-bound step is the rank's own") {
  const Sets base = {"/model/layers=4", "/run/ranks=explicit", "/run/steps=4", "/batch/micro_batch=2", "/batch/seq_len=4096"};
  const double healthy = step_s("7b-32xa100", base);
  const double throttled = step_s("7b-32xa100", base, {"/run/slow_ranks=[{\"rank\": 9, \"compute_scale\": 1.5}]"});
  CHECK(throttled / healthy > 1.3);
  CHECK(throttled / healthy <= 1.5);
}

// pytorch/torchtitan#148: collections at fixed steps on all ranks give about 1.5 % at 512 GPUs; deepspeedai/DeepSpeed#8451: 0.234 to 0.327 s per collection of generation 2.
TEST_CASE("pauses of single ranks cost the maximum over ranks; synchronised they cost once") {
  const Sets base = {"/model/layers=2", "/model/vocab=1024", "/run/ranks=explicit", "/run/wait=1", "/run/warmup=1", "/run/active=12"};
  const Sets pauses = {"/host/gc_period=1000 s", "/host/gc_pause=0.28 s"};
  const auto loss = [&](const char* nodes, const char* together) {
    Sets quiet = base, noisy = base;
    quiet.emplace_back(nodes);
    noisy.insert(noisy.end(), pauses.begin(), pauses.end());
    noisy.emplace_back(nodes);
    noisy.emplace_back(together);
    return step_s("7b-32xa100", noisy) / step_s("7b-32xa100", quiet) - 1;
  };
  const char *apart = "/host/gc_synchronised=false", *together = "/host/gc_synchronised=true";
  const double many = loss("/cluster/nodes=64", apart), few = loss("/cluster/nodes=1", apart), synchronised = loss("/cluster/nodes=64", together);
  CHECK(many > few);
  CHECK(many > 0.015 + synchronised);
}

// AMD-AGI/TraceLens#599: one rank arrives last in 86 % of the collectives; pytorch/pytorch#117550: in the traces of all others the all-gathers look long.
TEST_CASE("in the trace of one rank waiting is long collectives, and the guilty rank has the shortest ones") {
  const Sets base = {"/model/layers=4", "/run/ranks=explicit", "/run/steps=4", "/cluster/nodes=1"};
  const auto run = [&](const char* slow) {
    Sets sets = base;
    sets.emplace_back(slow);
    return forecast("7b-32xa100", sets).report;
  };
  const auto healthy = run("/run/slow_ranks=[]"), guilty = run("/run/slow_ranks=[{\"rank\": 0, \"compute_scale\": 1.2}]"),
             innocent = run("/run/slow_ranks=[{\"rank\": 4, \"compute_scale\": 1.2}]");
  CHECK(innocent.comm_s > 1.5 * guilty.comm_s);
  CHECK(innocent.step_time_s == doctest::Approx(guilty.step_time_s).epsilon(1e-9));
  CHECK(innocent.step_time_s > healthy.step_time_s);
  CHECK(cli::straggler(innocent) == 4);
  CHECK(innocent.rank_waits[4].last_share > 0.86);
}

// cornell-sysphotonics/ccl-bench, torchtitan on 4 A100: 8 to 24 % of a step is waiting for the last rank, more with a smaller batch.
TEST_CASE("noise of hosts makes ranks wait for each other, and costs more of a step with less work in it") {
  const auto run = [](const char* seq_len, const char* jitter) {
    return forecast("7b-32xa100", {"/model/layers=8", "/cluster/nodes=1", "/cluster/gpus_per_node=4", "/batch/micro_batch=1", "/run/ranks=explicit",
                                   "/run/active=8", seq_len, jitter})
        .report;
  };
  const auto slowdown = [&](const char* seq_len) {
    return run(seq_len, "/run/jitter={\"host\": 0.5, \"pause_period\": \"0.5 s\", \"pause\": \"40 ms\"}").step_time_s /
           run(seq_len, "/run/jitter={}").step_time_s;
  };
  CHECK(slowdown("/batch/seq_len=1024") > 1.05);
  CHECK(slowdown("/batch/seq_len=1024") < 1.6);
  CHECK(slowdown("/batch/seq_len=4096") < slowdown("/batch/seq_len=1024"));
  const auto noisy = run("/batch/seq_len=1024", "/run/jitter={\"kernel\": 0.1, \"rank_speed\": 0.05}");
  double most = 0;
  for (const auto& row : noisy.rank_waits) most = std::max(most, row.collective_wait_s);
  CHECK(most > 0.03 * noisy.step_time_s);
}

// verl-project/verl-omni#421, FSDP2 with forward prefetch: all-gathers overlapped with 1 and 8 connections, reduce-scatters only with 8.
TEST_CASE("one hardware queue serialises FSDP2's reduce-scatters with compute, and leaves its all-gathers overlapped") {
  const auto exposed = [](const char* connections, const std::string& kind) {
    const auto report = forecast("7b-32xa100", {"/policy/framework=fsdp2", "/policy/forward_prefetch_depth=1", "/model/layers=16", connections}).report;
    for (const auto& row : report.collectives)
      if (row.kind == kind) return row.exposed_s;
    return 0.0;
  };
  const char *one = "/host/cuda_device_max_connections=1", *eight = "/host/cuda_device_max_connections=8";
  CHECK(exposed(one, "reduce_scatter") > 3 * exposed(eight, "reduce_scatter"));
  CHECK(exposed(one, "all_gather") - exposed(eight, "all_gather") < 0.1 * (exposed(one, "reduce_scatter") - exposed(eight, "reduce_scatter")));
}

// stas00/ml-engineering, a loader emulated with 0 to 4 workers: 5.388, 3.900, 1.333, 0.839, 0.875 s; open-edge-platform/geti#5958: 3 -> 13 iterations/s, data time 0.217 -> 0.004 s.
TEST_CASE("a step takes the longer of compute and loader / workers, with a plateau once there are enough") {
  const Sets base = {"/model/layers=4", "/batch/micro_batch=1"};
  const double compute = step_s("7b-32xa100", base);
  const auto time = [&](int workers) {
    return step_s("7b-32xa100", base, {"/loader/batch_time=" + std::to_string(4 * compute) + " s", "/loader/workers=" + std::to_string(workers)});
  };
  for (const int workers : {1, 2, 3}) CHECK(time(workers) == doctest::Approx(4 * compute / workers).epsilon(0.01));
  CHECK(time(5) == doctest::Approx(compute).epsilon(0.01));
  CHECK(time(8) == doctest::Approx(compute).epsilon(0.01));
  CHECK(time(0) >= 4 * compute);
  CHECK(time(0) <= 5.01 * compute);
  Sets starved = base;
  starved.insert(starved.end(), {"/loader/batch_time=" + std::to_string(4 * compute) + " s", "/loader/workers=1"});
  const auto report = forecast("7b-32xa100", starved).report;
  CHECK(report.bound == "data");
  CHECK(report.data_wait_s > 0.7 * report.step_time_s);
}

// Pre-tokenised text: niznik-dev/cruijff_kit#514, 0 -> 2 workers 1234.5 -> 1159 s, 4 workers 1166 s; BLOOM-176B, 0 workers -3.4 %.
TEST_CASE("for text the first workers are worth a few per cent and further ones nothing") {
  const Sets base = {"/model/layers=8", "/host/sync_each_step=true"};  // the loss is logged
  const double without_loader = step_s("7b-32xa100", base);
  const auto time = [&](const char* workers) {
    return step_s("7b-32xa100", base, {"/loader/batch_time=" + std::to_string(0.06 * without_loader) + " s", workers});
  };
  const double none = time("/loader/workers=0"), two = time("/loader/workers=2"), four = time("/loader/workers=4");
  CHECK(none / two > 1.02);
  CHECK(none / two < 1.07);
  CHECK(four == doctest::Approx(two).epsilon(1e-3));
  // A host that need not wait for the device loads behind the device's back.
  CHECK(step_s("7b-32xa100", base, {"/loader/batch_time=" + std::to_string(0.06 * without_loader) + " s", "/loader/workers=0", "/host/sync_each_step=false"}) <
        1.01 * without_loader);
}

// stas00/ml-engineering, a loop of copies to an A100 PCIe: 0.646 s with neither, 0.658 non-blocking alone, 0.522 pinned, 0.459 both. If the copy is wholly hidden in the last, it is
// 63 ms long when pinned: 1.64 GB at 26.1 GB/s; the other 0.459 s are the host's.
TEST_CASE("pinned memory makes copies shorter, non-blocking hides them, and non-blocking alone does nothing") {
  const auto time = [](const char* pinned, const char* non_blocking) {
    return step_s("7b-32xa100",
                  {"/cluster/node=a100-pcie", "/cluster/gpu=a100-pcie-80gb", "/cluster/nodes=1", "/cluster/gpus_per_node=1", "/policy/framework=ddp",
                   "/model/layers=1", "/model/hidden=128", "/model/heads=1", "/model/kv_heads=1", "/model/ffn=128", "/model/vocab=128", "/batch/micro_batch=4",
                   "/batch/seq_len=16", "/loader/sample_bytes=411 MB", "/loader/workers=0", "/loader/batch_time=0.459 s", pinned, non_blocking});
  };
  const double neither = time("/loader/pin_memory=false", "/loader/non_blocking=false");
  CHECK(time("/loader/pin_memory=false", "/loader/non_blocking=true") == doctest::Approx(neither).epsilon(1e-9));
  CHECK(time("/loader/pin_memory=true", "/loader/non_blocking=false") / neither == doctest::Approx(0.81).epsilon(0.08));
  CHECK(time("/loader/pin_memory=true", "/loader/non_blocking=true") / neither == doctest::Approx(0.71).epsilon(0.08));
}
