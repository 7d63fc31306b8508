// What practitioners' settings do to time and memory of the 7B case on 4 x 8 A100, as the semantics of FSDP1 and of the caching allocator say.
// Sizes: a block's buffer is 2 x 202,383,360 B = 386.0 MiB; 2P = 12.55 GiB.
#include <doctest/doctest.h>

#include "tests/support/forecast.hpp"

using namespace stepcast;
using test::forecast;

namespace {

constexpr double kGiB = 1073741824.0;
constexpr double kBlockGiB = 2.0 * 202383360 / kGiB;
constexpr double kTwoP = 2.0 * 6738415616 / kGiB;
const std::string kBase = "7b-32xa100";

double allocated(const cli::Report& report) { return static_cast<double>(report.peak_allocated_bytes) / kGiB; }
double active(const cli::Prediction& p) { return static_cast<double>(p.result.peak_active) / kGiB; }
double reserved(const cli::Report& report) { return static_cast<double>(report.peak_reserved_bytes) / kGiB; }

}  // namespace

TEST_CASE("limiter off with ample memory and a fast host: the same time, more memory") {
  const auto on = forecast(kBase, {"/batch/micro_batch=1"}), off = forecast(kBase, {"/batch/micro_batch=1", "/policy/limit_all_gathers=false"});
  CHECK(off.report.step_time_s == doctest::Approx(on.report.step_time_s).epsilon(0.01));
  CHECK(reserved(off.report) > reserved(on.report) + 5 * kBlockGiB);
}

TEST_CASE("limiter off with little memory: the allocator flushes and the step is slower") {
  const std::vector<std::string> tight = {"/batch/micro_batch=2", "/allocator/device_memory=\"62 GiB\""};
  auto tight_off = tight;
  tight_off.emplace_back("/policy/limit_all_gathers=false");
  const auto on = forecast(kBase, tight), off = forecast(kBase, tight_off);
  CHECK(on.report.num_alloc_retries == 0);
  CHECK(off.report.num_alloc_retries > 0);
  CHECK(off.report.step_time_s > 1.1 * on.report.step_time_s);
  CHECK(off.report.bound == "memory");
}

TEST_CASE("BACKWARD_PRE holds one more gathered block than NONE and is never slower") {
  const std::vector<std::string> base = {"/batch/micro_batch=1"};
  auto none = base, post = base;
  none.emplace_back("/policy/backward_prefetch=NONE");
  post.emplace_back("/policy/backward_prefetch=BACKWARD_POST");
  const auto p = forecast(kBase, base), n = forecast(kBase, none), o = forecast(kBase, post);
  CHECK(p.report.step_time_s <= o.report.step_time_s * 1.01);
  CHECK(o.report.step_time_s < n.report.step_time_s);
  CHECK(active(p) - active(n) == doctest::Approx(kBlockGiB).epsilon(0.15));
}

TEST_CASE("forward_prefetch with a GPU-bound step gains nothing in time") {
  const auto without = forecast(kBase), with = forecast(kBase, {"/policy/forward_prefetch=true"});
  CHECK(with.report.step_time_s == doctest::Approx(without.report.step_time_s).epsilon(0.003));
  CHECK(active(with) >= active(without));
}

TEST_CASE("SHARD_GRAD_OP keeps the parameters: no gather in the backward, 2P more memory") {
  const std::vector<std::string> base = {"/batch/micro_batch=1", "/recompute/mode=full"};
  auto kept = base;
  kept.emplace_back("/policy/sharding=SHARD_GRAD_OP");
  const auto full = forecast(kBase, base), grad_op = forecast(kBase, kept);
  CHECK(allocated(grad_op.report) - allocated(full.report) == doctest::Approx(kTwoP).epsilon(0.15));
  CHECK(grad_op.report.comm_s < full.report.comm_s);
}

TEST_CASE("accumulation costs a sharded gradient; with no_sync the unsharded gradients, 2P") {
  const std::vector<std::string> one = {"/batch/micro_batch=1", "/recompute/mode=full"};
  auto plain = one, no_sync = one;
  plain.emplace_back("/batch/grad_accum=3");
  no_sync.insert(no_sync.end(), {"/batch/grad_accum=3", "/policy/no_sync=true"});
  const auto a = forecast(kBase, one), b = forecast(kBase, plain), c = forecast(kBase, no_sync);
  CHECK(allocated(b.report) - allocated(a.report) < 1.5);
  CHECK(allocated(c.report) - allocated(b.report) == doctest::Approx(kTwoP).epsilon(0.12));
  CHECK(c.report.comm_s < b.report.comm_s);
}

TEST_CASE("max_split_size 512 MiB leaves buffers of 386 MiB alone: the same time, no retries") {
  const auto without = forecast(kBase), with = forecast(kBase, {"/allocator/max_split_size=\"512 MiB\""});
  CHECK(with.report.step_time_s == doctest::Approx(without.report.step_time_s).epsilon(1e-3));
  CHECK(with.report.num_alloc_retries == 0);
}

TEST_CASE("checkpointing frees activations and costs a forward: MFU falls, HFU does not") {
  const auto none = forecast(kBase), full = forecast(kBase, {"/recompute/mode=full"});
  CHECK(allocated(full.report) < 0.4 * allocated(none.report));
  CHECK(full.report.mfu < none.report.mfu * 0.85);
  CHECK(full.report.hfu > none.report.hfu * 0.95);
}

TEST_CASE("allocated < active <= reserved") {
  const auto p = forecast(kBase);
  CHECK(p.result.peak_allocated < p.result.peak_active);
  CHECK(p.result.peak_active <= p.result.peak_reserved);
}

TEST_CASE("the case study tells its story: 28 %, remedies that do nothing, thrashing, then past 50 %") {
  const auto mfu = [](const std::string& stage) { return forecast(stage).report.mfu; };
  const auto baseline = forecast("01-baseline");
  CHECK(baseline.report.mfu == doctest::Approx(0.28).epsilon(0.03));
  CHECK(baseline.report.bound == "communication");
  CHECK(mfu("02-limiter-off") == doctest::Approx(baseline.report.mfu).epsilon(0.002));
  CHECK(mfu("03-max-split-512") == doctest::Approx(baseline.report.mfu).epsilon(0.002));
  CHECK(forecast("04-overlap").report.num_alloc_retries > 0);
  CHECK(mfu("04-overlap") > baseline.report.mfu + 0.1);
  CHECK(mfu("05-allocator") > 0.5);
  CHECK(forecast("05-allocator").report.num_alloc_retries == 0);
  CHECK(mfu("07-larger-micro-batch") > mfu("06-fusion"));
  CHECK(mfu("08-checkpointing") < mfu("07-larger-micro-batch"));
}

TEST_CASE("explicit ranks give the folded result to the picosecond, memory included") {
  const std::vector<std::string> sets = {"/model/layers=8", "/run/steps=3"};
  auto explicit_sets = sets;
  explicit_sets.emplace_back("/run/ranks=explicit");
  const auto folded = forecast(kBase, sets), all = forecast(kBase, explicit_sets);
  CHECK(folded.result.step_end == all.result.step_end);
  CHECK(folded.result.peak_reserved == all.result.peak_reserved);
  CHECK(folded.result.peak_active == all.result.peak_active);
}
