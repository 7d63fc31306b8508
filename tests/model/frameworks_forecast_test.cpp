// Whole forecasts under FSDP2 and DDP: explicit ranks equal the folded one, what the settings do, and their keys survive writing and reading.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "tests/support/forecast.hpp"

using namespace stepcast;

namespace {

using Sets = std::vector<std::string>;

Sets with(const Sets& more) {
  Sets sets = {"/model/layers=3", "/batch/micro_batch=1", "/batch/seq_len=1024", "/run/steps=3"};
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

cli::Prediction forecast(const Sets& more) { return test::forecast("7b-32xa100", with(more)); }

const Sets kSettings[] = {
    {"/policy/framework=fsdp2"},
    {"/policy/framework=fsdp2", "/policy/reshard_after_forward=8", "/policy/backward_prefetch_depth=2"},
    {"/policy/framework=fsdp2", "/policy/sharding=HYBRID_SHARD", "/policy/reshard_after_forward=false"},
    {"/policy/framework=fsdp2", "/policy/wrap=embedding_and_head", "/policy/forward_prefetch_depth=1", "/policy/unshard_embedding_in_backward=false"},
    {"/policy/framework=ddp"},
    {"/policy/framework=ddp", "/policy/bucket_cap=100 MiB", "/policy/gradient_as_bucket_view=true"},
    {"/policy/framework=fsdp1", "/policy/cpu_offload=parameters"},
    {"/policy/framework=fsdp2", "/policy/cpu_offload=parameters"},
    {"/policy/framework=zero1", "/policy/reduce_bucket_size=50000000"},
    {"/policy/framework=zero2", "/policy/overlap_comm=true", "/policy/cpu_offload=optimizer"},
    {"/policy/framework=zero3", "/policy/stage3_prefetch_bucket_size=100000000"}};

}  // namespace

TEST_CASE("explicit ranks agree with the folded one to the picosecond") {
  for (const Sets& settings : kSettings) {
    Sets explicit_ranks = settings;
    explicit_ranks.emplace_back("/run/ranks=explicit");
    CAPTURE(settings.back());
    const auto folded = forecast(settings), all = forecast(explicit_ranks);
    REQUIRE(folded.report.outcome == "ok");
    CHECK(folded.result.step_end == all.result.step_end);
    CHECK(folded.result.peak_reserved == all.result.peak_reserved);
  }
}

TEST_CASE("keys of FSDP2 and DDP are written and read again") {
  for (const Sets& settings : kSettings) {
    const auto scenario = scenarios::read_scenario("7b-32xa100", with(settings));
    CHECK(scenarios::read_scenario_text(scenarios::to_json_text(scenario), "test") == scenario);
  }
}

TEST_CASE("an eighth kept after the forward saves the nodes' network in the backward and costs that eighth of memory") {
  const auto whole = forecast({"/policy/framework=fsdp2"}), eighth = forecast({"/policy/framework=fsdp2", "/policy/reshard_after_forward=8"});
  CHECK(eighth.report.comm_s < whole.report.comm_s);
  CHECK(eighth.report.peak_allocated_bytes > whole.report.peak_allocated_bytes);
}

TEST_CASE("DDP needs 20 bytes a parameter, FSDP2 on 32 ranks far less") {
  const auto ddp = forecast({"/policy/framework=ddp"}), view = forecast({"/policy/framework=ddp", "/policy/gradient_as_bucket_view=true"}),
             fsdp2 = forecast({"/policy/framework=fsdp2"});
  const std::int64_t parameters = ddp.report.scenario.parameters;
  CHECK(ddp.report.peak_allocated_bytes > 20 * parameters);
  CHECK(ddp.report.peak_allocated_bytes - view.report.peak_allocated_bytes > 3 * parameters);
  CHECK(fsdp2.report.peak_allocated_bytes < ddp.report.peak_allocated_bytes / 2);
}

TEST_CASE("each stage of ZeRO takes less memory than the one before; offload takes still less and costs time") {
  const Sets buckets = {"/policy/reduce_bucket_size=50000000"};
  const auto stage = [&](const char* name, const Sets& more = {}) {
    Sets sets = {std::string("/policy/framework=") + name, buckets.front()};
    sets.insert(sets.end(), more.begin(), more.end());
    return forecast(sets).report;
  };
  const Sets few_live = {"/policy/stage3_max_live_parameters=200000000", "/policy/stage3_max_reuse_distance=0"};  // three blocks would all stay gathered
  Sets offloaded = few_live;
  offloaded.emplace_back("/policy/cpu_offload=optimizer");
  const auto one = stage("zero1"), two = stage("zero2"), three = stage("zero3", few_live), off = stage("zero3", offloaded);
  CHECK(one.peak_allocated_bytes > two.peak_allocated_bytes);
  CHECK(two.peak_allocated_bytes > three.peak_allocated_bytes);
  CHECK(three.peak_allocated_bytes > off.peak_allocated_bytes);
  CHECK(off.step_time_s > three.step_time_s);
  CHECK(three.comm_s > two.comm_s);  // parameters are gathered twice
}

TEST_CASE("defaults of DeepSpeed") {
  const auto read = [](const Sets& more) { return scenarios::read_scenario("7b-32xa100", with(more)); };
  CHECK(read({"/policy/framework=zero3"}).policy.overlap_comm);
  CHECK_FALSE(read({"/policy/framework=zero2"}).policy.overlap_comm);
  CHECK(read({"/policy/framework=zero2", "/precision/param=fp16"}).precision.reduce == hw::Dtype::fp16);
  CHECK(read({"/policy/framework=zero2"}).optimizer.implementation == program::OptimizerImpl::fused);
}

TEST_CASE("DDP reduces in the master type unless told otherwise, which is refused") {
  CHECK(scenarios::read_scenario("7b-32xa100", with({"/policy/framework=ddp"})).precision.reduce == hw::Dtype::fp32);
  CHECK_THROWS_WITH_AS(forecast({"/policy/framework=ddp", "/precision/reduce=bf16"}),
                       "--set: /precision/reduce: \"ddp\" reduces gradients in the type of the parameters; leave it out, or make it equal to master",
                       InputError);
}
