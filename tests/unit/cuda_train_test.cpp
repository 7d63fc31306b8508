// Training through the CUDA driver, on fakes: the host driver's losses, norms, parameters and allocator statistics, on as many ranks as there are GPUs, and no fault of the driver.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "real_backend/cuda/driver.hpp"
#include "tests/fakes/machine.hpp"
#include "tests/support/tiny_models.hpp"

namespace stepcast::real {
namespace {

using namespace test;
using program::StepSpec;

constexpr int kSteps = 3;

bool equal_or_absent(double a, double b) { return (std::isnan(a) && std::isnan(b)) || close(a, b); }

void expect_same(const JobResult& result, const JobResult& truth) {
  REQUIRE_MESSAGE(result.failures.empty(), result.failures.front());
  REQUIRE(result.steps.size() == truth.steps.size());
  for (std::size_t k = 0; k < truth.steps.size(); ++k) {
    CAPTURE(k);
    CHECK(close(result.steps[k].loss, truth.steps[k].loss));
    CHECK(equal_or_absent(result.steps[k].grad_norm, truth.steps[k].grad_norm));
  }
  REQUIRE(result.parameters.size() == truth.parameters.size());
  for (std::size_t i = 0; i < truth.parameters.size(); ++i) {
    CAPTURE(truth.parameters[i].name);
    CHECK(close(result.parameters[i].sum, truth.parameters[i].sum));
    CHECK(close(result.parameters[i].norm, truth.parameters[i].norm));
  }
}

/// Trains on both drivers; returns the CUDA driver's result.
JobResult compare(const StepSpec& spec) {
  const program::Program program = program::build_program(spec, kSteps);
  const JobSettings settings = closed_form(spec);
  const JobResult truth = train_on_host(program, settings);
  REQUIRE(truth.failures.empty());
  const fakes::Machine machine(static_cast<int>(spec.world.ranks()));
  JobResult result = train(program, settings, cuda::make_driver);
  CHECK(machine.faults() == std::vector<std::string>{});
  CHECK(machine.leaks() == std::vector<std::string>{});
  expect_same(result, truth);
  return result;
}

TEST_CASE("CUDA driver: a tiny Llama and a tiny GPT on one GPU") {
  compare(tiny_llama());
  compare(tiny_gpt());
}

TEST_CASE("CUDA driver: one GPU gives PyTorch's first loss") {
  const auto truth = reference("tiny_llama.json");
  if (!truth) {
    MESSAGE("skipped: no ../shared/reference/tiny_llama.json");
    return;
  }
  CHECK(close(compare(tiny_llama()).steps[0].loss, (*truth)["steps"][0]["loss"].get<double>()));
}

struct Way {
  const char* name;
  void (*set)(StepSpec& spec);
};

const Way kWays[] = {
    {"FSDP1, full sharding", [](StepSpec&) {}},
    {"FSDP1, gradients and optimizer alone", [](StepSpec& s) { s.policy.sharding = program::Sharding::shard_grad_op; }},
    {"FSDP1, no prefetch, no limiter", [](StepSpec& s) { s.policy.backward_prefetch = program::BackwardPrefetch::none, s.policy.limit_all_gathers = false; }},
    {"FSDP1, accumulation without synchronisation", [](StepSpec& s) { s.batch.micro_batch /= 2, s.batch.grad_accum = 2, s.policy.no_sync = true; }},
    {"FSDP1, full recomputation", [](StepSpec& s) { s.recompute.mode = program::RecomputeMode::full; }},
    {"FSDP2", [](StepSpec& s) { s.policy.framework = program::Framework::fsdp2; }},
    {"FSDP2, kept after the forward",
     [](StepSpec& s) { s.policy.framework = program::Framework::fsdp2, s.policy.reshard_after_forward = program::kKeepAfterForward; }},
    {"DDP", [](StepSpec& s) { s.policy.framework = program::Framework::ddp, s.policy.bucket_cap = 20'000; }},
};

void on_ranks(std::int32_t ranks, StepSpec spec) {
  spread(spec, ranks);
  for (const Way& way : kWays) {
    CAPTURE(way.name);
    StepSpec own = spec;
    way.set(own);
    compare(own);
  }
}

TEST_CASE("CUDA driver: two GPUs under all kinds of policies") { on_ranks(2, tiny_llama()); }
TEST_CASE("CUDA driver: four GPUs under all kinds of policies") { on_ranks(4, tiny_gpt()); }

TEST_CASE("CUDA driver: sharded in pairs, replicated over two of them; and resharded to pairs after the forward") {
  for (const bool fsdp2 : {false, true}) {
    StepSpec spec = tiny_llama();
    spread(spec, 4);
    spec.world = {2, 2};
    spec.policy.framework = fsdp2 ? program::Framework::fsdp2 : program::Framework::fsdp1;
    spec.policy.sharding = program::Sharding::hybrid_shard;
    compare(spec);
  }
  StepSpec spec = tiny_llama();
  spread(spec, 4);
  spec.policy.framework = program::Framework::fsdp2;
  spec.policy.reshard_after_forward = 2;
  compare(spec);
}

TEST_CASE("CUDA driver: bf16 with fp32 master parameters stays near the host's, and the pools are alike") {
  StepSpec spec = tiny_llama();
  spec.precision = {hw::Dtype::bf16, hw::Dtype::fp32, hw::Dtype::fp32};
  spread(spec, 2);
  const program::Program program = program::build_program(spec, kSteps);
  const JobResult truth = train_on_host(program, closed_form(spec));
  const fakes::Machine machine(2);
  const JobResult result = train(program, closed_form(spec), cuda::make_driver);
  CHECK(machine.faults() == std::vector<std::string>{});
  REQUIRE_MESSAGE(result.failures.empty(), result.failures.front());
  for (std::size_t k = 0; k < kSteps; ++k) CHECK(std::abs(result.steps[k].loss - truth.steps[k].loss) < 4.3 * 0x1p-7);
  CHECK(result.memory.allocated == truth.memory.allocated);
  CHECK(result.memory.by_owner == truth.memory.by_owner);
}

TEST_CASE("CUDA driver: the trace of a run has the kernels and collectives of all streams, in order") {
  StepSpec spec = tiny_llama();
  spread(spec, 2);
  const JobResult result = compare(spec);
  REQUIRE(result.trace.steps.size() == kSteps);
  std::size_t kernels = 0, collectives = 0;
  for (const trace::Slice& s : result.trace.ranks[0].slices) {
    CHECK(s.end >= s.begin);
    kernels += s.category == trace::Category::kernel ? 1U : 0U;
    collectives += s.category == trace::Category::collective ? 1U : 0U;
  }
  CHECK(collectives == kSteps * 12);  // gathers of the root and three blocks, the blocks once more, four reduce-scatters, one norm
  CHECK(kernels > kSteps * 100);
  CHECK(result.trace.steps[2].device_end > result.trace.steps[1].device_end);
}

}  // namespace
}  // namespace stepcast::real
