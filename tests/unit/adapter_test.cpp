// Low-rank adapters: kernels, bytes, products and saved activations of a block against hand sums; what is gathered, reduced and updated; what is refused.
// Follows PEFT's and torchtune's LoRALinear without dropout; docs/kernels.md, "Adapters".
#include "program/blocks/adapter.hpp"

#include <doctest/doctest.h>

#include "program/build.hpp"
#include "program/check.hpp"
#include "program/count.hpp"
#include "program/model.hpp"
#include "program/validate.hpp"
#include "tests/support/block_tally.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using test::kFfn, test::kHeads, test::kHidden, test::kTf, test::kTh, test::kTokens;
constexpr double kRank = 8;

using test::BlockTally, test::saved_per_token, test::tally, test::two_blocks;

StepSpec llama(Framework framework, LoraTargets targets = LoraTargets::query_value) {
  StepSpec spec = two_blocks(test::llama2_7b());
  spec.policy.framework = framework;
  spec.policy.use_orig_params = framework == Framework::fsdp1;
  spec.model.lora_rank = static_cast<std::int64_t>(kRank);
  spec.model.lora_targets = targets;
  if (framework == Framework::ddp) spec.precision.reduce = spec.precision.master;
  return spec;
}

std::int64_t collective_bytes(const Program& program, const char* label) {
  for (const CollectiveEntry& c : program.collectives) {
    if (c.label == label) return c.shape.bytes;
  }
  return 0;
}

TEST_CASE("beside q and v, eager: four kernels forward; six backward, in place of the weight gradients of what is frozen") {
  const StepSpec spec = llama(Framework::fsdp1);
  const BlockTally t = tally(spec);
  CHECK(t.forward.kernels() == 38 + 2 * 4);
  CHECK(t.forward.gemms == 7 + 2 * 2);
  // scale 4 Th and sum 6 Th of each
  CHECK(t.forward.bytes == doctest::Approx((124 + 20) * kTh + 10 * kTf).epsilon(0.001));
  CHECK(t.forward.gemm_flops == 2 * kTokens * (4 * kHidden * kHidden + 3 * kHidden * kFfn) + 2 * 2 * 2 * kTokens * kHidden * kRank);
  // less 7 weight gradients and two kernels of each norm's weight (8 Th)
  CHECK(t.backward.kernels() == 75 - 7 - 4 + 2 * 6);
  CHECK(t.backward.gemms == 7 + 2 * 4);
  CHECK(t.backward.bytes == doctest::Approx((274 + 20 - 16) * kTh + 18 * kTf).epsilon(0.001));
  CHECK(t.backward.gemm_flops == 2 * kTokens * (4 * kHidden * kHidden + 3 * kHidden * kFfn) + 2 * 4 * 2 * kTokens * kHidden * kRank);
  // Nobody needs the second norm's output, both norms' normalised inputs (2 h each) or the gated product (2 f); the adapters' narrow outputs come on top (2 r each).
  CHECK(saved_per_token(spec, 1) == 18 * kHidden + 6 * kFfn + 4 * kHeads + 8 + 4 * kRank);
}

TEST_CASE("compiled: scale and sum ride in one kernel") {
  StepSpec spec = llama(Framework::fsdp1);
  spec.kernels.set = KernelSet::pytorch_compile;
  const BlockTally t = tally(spec);
  CHECK(t.forward.kernels() == 14 + 2 * 3);
  CHECK(t.backward.kernels() == 26 - 7 - 4 + 2 * 6);
}

TEST_CASE("parameters: A of rank x in and B of out x rank beside each layer") {
  ModelShape model = llama(Framework::fsdp2).model;
  CHECK(trained_parameters(model) == 2 * 2 * 8 * (4096 + 4096));
  model.lora_targets = LoraTargets::attention;
  CHECK(trained_parameters(model) == 2 * 4 * 8 * (4096 + 4096));
  model.lora_targets = LoraTargets::all_linear;
  CHECK(trained_parameters(model) == 2 * (4 * 8 * (4096 + 4096) + 3 * 8 * (4096 + 11008)));
  ModelShape whole = model;
  whole.lora_rank = 0;
  CHECK(trained_parameters(whole) == parameters(whole));
  CHECK(parameters(model) == parameters(whole) + trained_parameters(model));
}

TEST_CASE("model FLOPs: four for each frozen parameter, six for each trained one") {
  const ModelShape model = llama(Framework::fsdp2).model;
  const double all = static_cast<double>(parameters(model)), trained = static_cast<double>(trained_parameters(model));
  CHECK(model_flops_per_token(model, parameters(model), 4096, FlopsConvention::six_p).si() == 4 * (all - trained) + 6 * trained);
}

TEST_CASE("fully_shard gathers everything and reduces the adapters alone; embedding and head have nothing to reduce") {
  const StepSpec spec = llama(Framework::fsdp2);
  const Program p = build_program(spec, 2);
  CHECK(check(p).empty());
  const std::int64_t adapters = 2 * 8 * (4096 + 4096), block = parameters_per_block(spec.model);
  // 32 ranks; the 8 rows of an A are padded to 32
  const std::int64_t padding = 2 * 24 * 4096;
  CHECK(collective_bytes(p, "all_gather block") == 2 * (block + padding));
  CHECK(collective_bytes(p, "reduce_scatter block") == 2 * (adapters + padding));
  CHECK(collective_bytes(p, "reduce_scatter root") == 0);
  std::int64_t state = 0;
  for (const BufferEntry& buffer : p.buffers) state += buffer.label.ends_with(".exp_avg") ? buffer.bytes : 0;
  CHECK(state == 2 * 4 * (adapters + padding) / 32);
}

TEST_CASE("FSDP1 with use_orig_params: a unit that trains anything reduces its whole flat gradient; the root, frozen as a whole, none") {
  const StepSpec spec = llama(Framework::fsdp1);
  const Program p = build_program(spec, 2);
  CHECK(check(p).empty());
  CHECK(collective_bytes(p, "reduce_scatter block") == collective_bytes(p, "all_gather block"));
  int reductions = 0, gathers = 0;
  for (const Op& op : p.slice(p.steps[1])) {
    if (op.kind != OpKind::collective) continue;
    const hw::CollectiveKind kind = p.collectives[op.id].shape.kind;
    reductions += kind == hw::CollectiveKind::reduce_scatter ? 1 : 0;
    gathers += kind == hw::CollectiveKind::all_gather ? 1 : 0;
  }
  CHECK(reductions == 2);
  CHECK(gathers == 2 + 1 + 2);  // both blocks and the root; both again for the backward, the root having stayed
}

TEST_CASE("DDP all-reduces the adapters") {
  const StepSpec spec = llama(Framework::ddp);
  const Program p = build_program(spec, 3);
  CHECK(check(p).empty());
  std::int64_t bytes = 0;
  for (const Op& op : p.slice(p.steps[2])) {
    if (op.kind == OpKind::collective && p.collectives[op.id].label == "all_reduce bucket") bytes += p.collectives[op.id].shape.bytes;
  }
  CHECK(bytes == 4 * trained_parameters(spec.model));
}

std::int64_t allocated(const Program& p, const char* label) {
  for (const BufferEntry& buffer : p.buffers) {
    if (buffer.label == label) return buffer.bytes;
  }
  return 0;
}

TEST_CASE("ZeRO-1 and 2: the flat parameters are the adapters; what is frozen lies beside them, whole on every rank") {
  for (const Framework framework : {Framework::zero1, Framework::zero2}) {
    const StepSpec spec = llama(framework);
    const Program p = build_program(spec, 2);
    CHECK(check(p).empty());
    const std::int64_t adapters = trained_parameters(spec.model), all = parameters(spec.model);
    CHECK(allocated(p, "bit16_parameters") == 2 * adapters);
    CHECK(allocated(p, "frozen_parameters") == 2 * (all - adapters));
    CHECK(allocated(p, "partition.master") == 4 * adapters / 32);
    std::int64_t reduced = 0;
    for (const Op& op : p.slice(p.steps[1])) {
      if (op.kind == OpKind::collective && p.collectives[op.id].label == "all_reduce bucket") reduced += p.collectives[op.id].shape.bytes;
    }
    CHECK(reduced == 2 * adapters);
  }
}

TEST_CASE("ZeRO-3 partitions everything, and has gradients and state of the adapters alone; the embedding is not gathered in the backward") {
  const StepSpec spec = llama(Framework::zero3);
  const Program p = build_program(spec, 2);
  CHECK(check(p).empty());
  const std::int64_t adapters = trained_parameters(spec.model);
  CHECK(allocated(p, "bit16_partition") == 2 * parameters(spec.model) / 32);
  CHECK(allocated(p, "gradient_partition") == 2 * adapters / 32);
  CHECK(allocated(p, "partition.exp_avg") == 4 * adapters / 32);
}

TEST_CASE("offloaded: every shard is fetched, the adapters' gradients alone are sent") {
  StepSpec spec = llama(Framework::fsdp2);
  spec.policy.cpu_offload = CpuOffload::parameters;
  const Program p = build_program(spec, 2);
  CHECK(check(p).empty());
  std::int64_t fetched = 0, sent = 0;
  for (const Op& op : p.slice(p.steps[1])) {
    if (op.kind != OpKind::launch) continue;
    const hw::KernelShape& shape = p.kernels[op.id].shape;
    if (shape.kind == hw::KernelKind::copy_to_device && op.stream == Stream::copy_in) fetched += shape.write_bytes;
    if (shape.kind == hw::KernelKind::copy_to_host) sent += shape.read_bytes;
  }
  const std::int64_t adapters = 2 * 8 * (4096 + 4096) + 2 * 24 * 4096 /* rows of padding */;
  CHECK(sent == 2 * 4 * adapters / 32);
  CHECK(fetched > 50 * sent);
}

TEST_CASE("where adapters are not known") {
  const auto key = [](auto change) {
    StepSpec spec = llama(Framework::fsdp2);
    change(spec);
    const auto broken = broken_rule(spec);
    return std::string(broken ? broken->key : "");
  };
  CHECK(key([](StepSpec&) {}).empty());
  CHECK(key([](StepSpec& s) { s.policy.framework = Framework::zero3; }).empty());
  CHECK(key([](StepSpec& s) { s.policy.framework = Framework::fsdp1; }) == "/model/lora_rank");
  CHECK(key([](StepSpec& s) { s.precision.matmul = Matmul::fp8_tensorwise; }) == "/model/lora_rank");
  CHECK(key([](StepSpec& s) { s.model.lora_rank = 0, s.model.lora_targets = LoraTargets::attention; }) == "/model/lora_targets");
}

}  // namespace
}  // namespace stepcast::program
