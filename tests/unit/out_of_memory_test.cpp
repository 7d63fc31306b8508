// What an out-of-memory report says: PyTorch's message with its rounding of sizes, holders, changes that would fit. docs/report.md, "Out of memory".
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/out_of_memory.hpp"
#include "cli/report/out_of_memory.hpp"
#include "support/forecast.hpp"
#include "support/text.hpp"

using namespace stepcast;
using cli::OutOfMemoryRow, cli::Remedy;

namespace {

constexpr std::int64_t kMiB = 1 << 20, kGiB = 1024 * kMiB;

OutOfMemoryRow refused_request() {
  OutOfMemoryRow o;
  o.buffer = "logits";
  o.requested_bytes = 511 * kMiB;
  o.segment_bytes = 512 * kMiB;
  o.device_bytes = 80 * kGiB;
  o.outside_pool_bytes = 2 * kGiB;
  o.limit_bytes = 78 * kGiB;
  o.reserved_bytes = 77 * kGiB + 768 * kMiB;
  o.active_bytes = 72 * kGiB;
  o.allocated_bytes = 70 * kGiB;
  o.by_owner = {{"parameters", 10 * kGiB}, {"activations", 60 * kGiB}};
  return o;
}

using stepcast::test::has;

const Remedy* find(const std::vector<Remedy>& remedies, const std::string& set) {
  for (const Remedy& r : remedies) {
    if (r.sets.size() <= 2 && r.sets.front() == set) return &r;
  }
  return nullptr;
}

std::vector<Remedy> remedies_of(const std::vector<std::string>& sets) { return cli::remedies(scenarios::read_scenario("7b-32xa100", sets)); }

}  // namespace

TEST_CASE("PyTorch's message: the segment, the device's rest after pool and context, reserved less allocated") {
  // 80 GiB - 77.75 - 2 = 0.25 GiB free; 79.75 in use; 77.75 - 70 = 7.75 unallocated.
  CHECK(cli::pytorch_message(refused_request()) ==
        "CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 80.00 GiB of which 256.00 MiB is free. Including non-PyTorch memory, "
        "this "
        "process has 79.75 GiB memory in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 7.75 GiB is reserved by PyTorch but unallocated.");
  OutOfMemoryRow o = refused_request();
  o.fraction = true;
  o.segment_bytes = 1024;
  CHECK(has(cli::pytorch_message(o), "Tried to allocate 1024 bytes. "));
  CHECK(has(cli::pytorch_message(o), "memory in use. 78.00 GiB allowed; Of the allocated"));
}

TEST_CASE("text and JSON name who held the memory, and what would fit") {
  OutOfMemoryRow o = refused_request();
  o.remedies = {{{"/kernels/loss=fused"}, "fused loss", "out_of_memory"},
                {{"/recompute/mode=full"}, "recompute all blocks", "ok", 2.5, 1000, 60 * kGiB, 18 * kGiB, 1}};
  const std::string text = cli::out_of_memory_text(o);
  CHECK(has(text, "logits asks for 511.0 MiB, which takes a segment of 512.0 MiB"));
  CHECK(text.find("activations") < text.find("parameters"));
  CHECK(has(text, "(freed, other streams still use it)   2.000 GiB"));
  CHECK(has(text, "(cached, in pieces that don't serve)  5.750 GiB"));
  CHECK(has(text, "recompute all blocks    2.500 s         1,000      60.00 GiB  18.00 GiB             1  /recompute/mode=full"));
  CHECK(has(text, "not enough by itself: fused loss"));
  const auto json = cli::out_of_memory_json(o);
  CHECK(json["by_owner"]["activations"] == 60 * kGiB);
  CHECK(json["remedies"][0]["step_time_s"].is_null());
  CHECK(json["remedies"][1]["headroom_bytes"] == 18 * kGiB);
  o.remedies.pop_back();
  CHECK(has(cli::out_of_memory_text(o), "None of the changes that were simulated fits"));
}

TEST_CASE("at the failing request the owners add up to what is allocated, and the segment does not fit into the rest") {
  const auto prediction = test::forecast("7b-32xa100", {"/batch/micro_batch=8"});
  REQUIRE(prediction.report.outcome == "out_of_memory");
  const OutOfMemoryRow& o = prediction.report.out_of_memory;
  std::int64_t sum = 0;
  for (const cli::OwnerRow& owner : o.by_owner) sum += owner.bytes;
  CHECK(sum == o.allocated_bytes);
  CHECK(o.reserved_bytes + o.segment_bytes > o.limit_bytes);
  CHECK(o.active_bytes <= o.reserved_bytes);
  CHECK(o.limit_bytes + o.outside_pool_bytes == o.device_bytes);
  const auto half = test::forecast("7b-32xa100", {"/batch/micro_batch=8", "/allocator/memory_fraction=0.5"}).report;
  CHECK(half.out_of_memory.limit_bytes == doctest::Approx(static_cast<double>(half.out_of_memory.device_bytes) / 2).epsilon(1e-6));
  CHECK(half.memory_limit_bytes == half.out_of_memory.limit_bytes);
}

TEST_CASE("changes are sought with all ranks alike, whatever makes them differ") {
  const auto recompute = [](const std::vector<std::string>& sets) {
    const std::vector<Remedy> found = remedies_of(sets);
    const Remedy* remedy = find(found, "/recompute/mode=full");
    REQUIRE(remedy);
    CHECK(remedy->outcome == "ok");
    return remedy->peak_reserved_bytes;
  };
  CHECK(recompute({"/batch/micro_batch=8", "/kernels/loss=fused", "/run/ranks=explicit", "/run/jitter/kernel=0.02",
                   "/run/slow_ranks=[{\"rank\": 1, \"host_scale\": 2}]", "/loader/batch_time=1 ms", "/loader/batch_time_spread=0.2", "/host/gc_period=10 s",
                   "/host/gc_pause=0.1 s"}) == recompute({"/batch/micro_batch=8", "/kernels/loss=fused"}));
}

TEST_CASE("changes that fit are those that fit when they are run") {
  const std::vector<Remedy> found = remedies_of({"/batch/micro_batch=8", "/kernels/loss=fused"});
  const Remedy* recompute = find(found, "/recompute/mode=full");
  REQUIRE(recompute);
  CHECK(recompute->outcome == "ok");
  const auto run = test::forecast("7b-32xa100", {"/batch/micro_batch=8", "/kernels/loss=fused", "/recompute/mode=full"}).report;
  CHECK(recompute->step_time_s == run.step_time_s);
  CHECK(recompute->peak_reserved_bytes == run.peak_reserved_bytes);
  CHECK(recompute->headroom_bytes == run.memory_limit_bytes - run.peak_reserved_bytes);
  CHECK(!find(found, "/kernels/loss=fused"));             // already so
  CHECK(!find(found, "/policy/limit_all_gathers=true"));  // already so
  REQUIRE(find(found, "/batch/micro_batch=2"));           // of 4, 2 and 1 the largest that fits
  CHECK(find(found, "/batch/micro_batch=2")->sets.back() == "/batch/grad_accum=4");
  CHECK(!find(found, "/batch/micro_batch=1"));
  CHECK(found.back().sets.front() == "/cluster/nodes=8");
}

TEST_CASE("an odd micro-batch is divided by its factors") {
  const std::vector<Remedy> found = remedies_of({"/batch/micro_batch=9"});
  REQUIRE(find(found, "/batch/micro_batch=1"));
  CHECK(find(found, "/batch/micro_batch=1")->sets.back() == "/batch/grad_accum=9");
}

TEST_CASE("where no single change fits, two together may") {
  const std::vector<Remedy> found = remedies_of({"/model/preset=llama-3-70b", "/cluster/nodes=4", "/batch/micro_batch=4"});
  bool pair = false;
  for (const Remedy& r : found) {
    const bool combined = r.what.find(" and ") != std::string::npos;
    pair = pair || combined;
    CHECK((r.outcome == "ok") == combined);
  }
  CHECK(pair);
}

TEST_CASE("near the limit a run warns that retries may appear") {
  const auto warned = [](const std::string& memory) {
    const auto report = test::forecast("7b-32xa100", {"/allocator/device_memory=" + memory}).report;
    REQUIRE(report.outcome == "ok");
    for (const std::string& warning : report.warnings) {
      if (has(warning, "within 5 % of the limit") && has(warning, "retries may appear")) return true;
    }
    return false;
  };
  const auto report = test::forecast("7b-32xa100").report;
  const std::int64_t outside = report.out_of_memory.outside_pool_bytes;
  CHECK(!warned(std::to_string(static_cast<std::int64_t>(static_cast<double>(report.peak_reserved_bytes) * 1.07) + outside) + " B"));
  CHECK(warned(std::to_string(static_cast<std::int64_t>(static_cast<double>(report.peak_reserved_bytes) * 1.02) + outside) + " B"));
}
