// The report's rule for the bound, its JSON and its text. Rules: docs/report.md.
#include "cli/report/report.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/report/table.hpp"
#include "cli/report/text.hpp"
#include "support/text.hpp"

using namespace stepcast::cli;

namespace {

Report sample() {
  Report r;
  r.scenario = {"case", "because", "llama-2-7b", "A100-SXM4-80GB", "fsdp1 FULL_SHARD", "bf16", "none", "pytorch-eager", 4, 8, 4096, 2, 1, 6'738'415'616};
  r.step_time_s = 2.0;
  r.tokens_per_step_per_gpu = 8192;
  r.tokens_per_s_per_gpu = 4096;
  r.mfu = 0.443;
  r.memory_limit_bytes = std::int64_t{78} << 30;
  r.peak_allocated_bytes = std::int64_t{40} << 30;
  r.gaps = {{"all_gather", 64, 0.4}, {"reduce_scatter", 32, 0.1}, {"launch_bound", 10, 0.2}};
  r.phases = {{"forward", 0.6, 0.5, 0.4, 0.1, 0.0, 0.0, 0.0}};
  r.memory = {{"parameters", std::int64_t{1} << 30}, {"activations", std::int64_t{39} << 30}};
  r.flops_convention = "full_attention";
  return r;
}

using stepcast::test::has;

}  // namespace

TEST_CASE("the bound is the group of gaps that takes most of the step, from 15 % on; else compute") {
  Report r = sample();
  set_bound(r);  // all-gather and reduce-scatter: 0.5 s of 2 s
  CHECK(r.bound == "communication");
  CHECK(has(r.bound_reason, "25.0 %"));
  CHECK(has(r.bound_reason, "all_gather, 20.0 %"));

  r.gaps = {{"all_gather", 64, 0.29}, {"launch_bound", 10, 0.2}};  // 14.5 % is below the share
  set_bound(r);
  CHECK(r.bound == "compute");
  CHECK(has(r.bound_reason, "busy 75.5 %"));

  r.gaps = {{"data_loader", 1, 0.3}};
  set_bound(r);
  CHECK(r.bound == "data");
  r.gaps = {{"launch_bound", 1, 0.2}, {"launch_latency", 1, 0.2}, {"all_gather", 1, 0.35}};
  set_bound(r);
  CHECK(r.bound == "host");
  r.gaps = {{"device_malloc", 1, 0.2}, {"allocator_flush", 1, 0.2}, {"all_gather", 1, 0.3}};
  set_bound(r);
  CHECK(r.bound == "memory");
}

TEST_CASE("percentiles lie between sorted values") {
  const Percentiles p = percentiles({4, 1, 3, 2, 5});
  CHECK(p.p10 == doctest::Approx(1.4));
  CHECK(p.p50 == 3);
  CHECK(p.p90 == doctest::Approx(4.6));
  CHECK(percentiles({7}).p90 == 7);
}

TEST_CASE("the straggler is the rank that most collectives waited for; the report says how long the others wait") {
  Report r = sample();
  CHECK(straggler(r) == -1);
  CHECK(!has(to_text(r), "How steps and ranks differ"));
  r.rank_waits = {{0.3, 0.1}, {0.02, 0.8}, {0.25, 0.1}};
  CHECK(straggler(r) == 1);
  const auto j = to_json(r);
  CHECK(j["rank_waits"]["straggler"] == 1);
  CHECK(j["rank_waits"]["collective_wait_s"].size() == 3);
  CHECK(has(to_text(r), "80 % of the collectives that wait for somebody wait for rank 1; it waits 20.00 ms a step, rank 0 waits 300.0 ms"));
  r.rank_waits = {{0, 0}, {0, 0}};
  CHECK(straggler(r) == -1);
  CHECK(to_json(r)["rank_waits"]["straggler"].is_null());
}

TEST_CASE("where steps differ the report says of how many the time is the mean, and how seeds differ") {
  Report r = sample();
  r.steps = 12;
  r.mean_of_steps = true;
  r.measured_steps = 10;
  r.step_time_percentiles_s = {1.9, 2.0, 2.2};
  r.seeds = {0, {2.0, 2.1}, 2.05, {2.01, 2.05, 2.09}};
  const std::string text = to_text(r);
  CHECK(has(text, "10 steps: 10 %: 1.900 s, median 2.000 s, 90 %: 2.200 s"));
  CHECK(has(text, "2 seeds: mean 2.050 s"));
  CHECK(has(text, "mean of the last 10 of 12 steps"));
  const auto j = to_json(r);
  CHECK(j["measured_steps"] == 10);
  CHECK(j["step_time_percentiles_s"]["p90"] == 2.2);
  CHECK(j["seeds"]["count"] == 2);
  CHECK(j["seeds"]["percentiles_s"]["p50"] == 2.05);
}

TEST_CASE("JSON holds every field of the contract; times are null unless the run went through") {
  Report r = sample();
  const auto j = to_json(r);
  for (const char* key : {"outcome",
                          "step_time_s",
                          "tokens_per_s_per_gpu",
                          "mfu",
                          "hfu",
                          "mfu_6p",
                          "model_flops_per_step",
                          "hardware_flops_per_step",
                          "peak_allocated_bytes",
                          "peak_reserved_bytes",
                          "num_alloc_retries",
                          "num_device_mallocs",
                          "exposed_comm_s",
                          "comm_s",
                          "overlap_fraction",
                          "compute_s",
                          "idle_s",
                          "data_wait_s",
                          "host_blocked_s",
                          "bound",
                          "ranks",
                          "steps",
                          "phases",
                          "assumptions",
                          "warnings",
                          "flops_convention"}) {
    CHECK_MESSAGE(j.contains(key), key);
  }
  CHECK(j["step_time_s"] == 2.0);
  CHECK(j["phases"]["forward"]["span_s"] == 0.6);
  r.outcome = "out_of_memory";
  CHECK(to_json(r)["step_time_s"].is_null());
  CHECK(to_json(r)["mfu"].is_null());
  CHECK(to_json(r)["peak_allocated_bytes"] == (std::int64_t{40} << 30));
}

TEST_CASE("the text names what counts, in an order that adds up") {
  Report r = sample();
  set_bound(r);
  const std::string text = to_text(r);
  INFO(text);
  CHECK(has(text, "llama-2-7b on 32 x A100-SXM4-80GB (4 x 8)"));
  CHECK(has(text, "44.3 %"));
  CHECK(has(text, "bound by communication"));
  CHECK(has(text, "kernels                1.300 s  65.0 %"));  // 2.0 - 0.7
  CHECK(text.find("idle: all_gather") < text.find("idle: launch_bound"));
  CHECK(text.find("activations") < text.find("parameters  "));
  r.outcome = "out_of_memory";
  r.out_of_memory = {"b3.gate", 1 << 30, 1 << 30, std::int64_t{77} << 30, std::int64_t{78} << 30, std::int64_t{78} << 30, 1, 0.5};
  CHECK(has(to_text(r), "OUT OF MEMORY in step 1 at 500.0 ms: b3.gate asks for 1.000 GiB"));
}

TEST_CASE("numbers as text") {
  CHECK(time_text(0.8121) == "812.1 ms");
  CHECK(time_text(0.0099996) == "10.00 ms");
  CHECK(time_text(0.99999) == "1.000 s");
  CHECK(time_text(0) == "0");
  CHECK(size_text(1536.0 * 1048576) == "1.500 GiB");
  CHECK(count_text(6640.4) == "6,640");
  CHECK(count_text(1234567) == "1,234,567");
  CHECK(count_text(999) == "999");
  CHECK(bar(0.5, 10) == "#####");
  CHECK(bar(0.0001, 10) == "#");
  CHECK(bar(7.0, 10).size() == 10);
  CHECK(wrapped("one two three", 2, 9) == "  one two\n  three\n");
}
