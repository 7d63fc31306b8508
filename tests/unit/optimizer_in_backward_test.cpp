// The optimizer inside the backward: where its kernels stand, what its gradients and states take, what it is refused with. Llama-2-7B shapes with 4 blocks.
#include <doctest/doctest.h>

#include "program/build.hpp"
#include "program/check.hpp"
#include "program/model.hpp"
#include "program/validate.hpp"
#include "tests/support/ledger.hpp"
#include "tests/support/schedule.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using test::of;

constexpr std::int64_t kBlock = 202'383'360, kRoot = 262'148'096, kTable = std::int64_t{32000} * 4096;

StepSpec in_backward(Framework framework, const hw::GroupShape& world) {
  StepSpec spec = test::reference_step();
  spec.model.layers = 4;
  spec.policy.framework = framework;
  spec.world = world;
  if (framework == Framework::ddp) spec.precision = {hw::Dtype::bf16, hw::Dtype::bf16, hw::Dtype::bf16};
  spec.optimizer = {.implementation = OptimizerImpl::fused, .clip_grad_norm = false, .in_backward = true};
  return spec;
}

StepSpec one_rank() { return in_backward(Framework::ddp, {1, 1}); }
StepSpec sharded() { return in_backward(Framework::fsdp2, {8, 4}); }

/// Of the second step.
struct Steps {
  int launches = 0;
  double bytes = 0;
  bool outside_backward = false;
  std::vector<Stream> streams;
};

Steps steps_of(const StepSpec& spec) {
  const Program p = build_program(spec, 2);
  Steps result;
  bool backward = false;
  for (const Op& op : p.slice(p.steps[1])) {
    if (op.kind == OpKind::mark && p.marks[op.id].kind == MarkKind::backward) backward = p.marks[op.id].begin;
    if (op.kind != OpKind::launch || p.kernels[op.id].shape.memory != hw::MemoryClass::optimizer) continue;
    ++result.launches;
    result.bytes += hw::dram_bytes(p.kernels[op.id].shape).si();
    result.outside_backward = result.outside_backward || !backward;
    if (std::find(result.streams.begin(), result.streams.end(), op.stream) == result.streams.end()) result.streams.push_back(op.stream);
  }
  return result;
}

}  // namespace

TEST_CASE("one rank: a gradient goes with the step of its parameter, so that of the largest tensor alone is ever there") {
  const std::int64_t all = 4 * kBlock + kRoot;
  StepSpec spec = one_rank();
  auto l = test::ledger(build_program(spec, 2));
  CHECK(of(l.peak["backward"], Owner::gradients) == 2 * kTable);  // head or embedding; without in_backward 2 bytes of every parameter
  CHECK(of(l.at_end["backward"], Owner::gradients) == 0);
  CHECK(of(l.at_end["optimizer"], Owner::optimizer) == 4 * all);
  CHECK(of(l.peak["backward"], Owner::reduction) == 0);  // nor are there buckets
  spec.precision = {hw::Dtype::bf16, hw::Dtype::fp32, hw::Dtype::fp32};
  l = test::ledger(build_program(spec, 2));
  CHECK(of(l.peak["backward"], Owner::gradients) == 6 * kTable);  // as the kernel wrote it and in the master type, for the time of the cast
  CHECK(of(l.at_end["optimizer"], Owner::optimizer) == 8 * all);
}

TEST_CASE("one rank: each implementation makes its kernels for every parameter by itself, with temporaries of one tensor") {
  StepSpec spec = one_rank();
  const auto accesses = static_cast<double>(2 * (4 * kBlock + kRoot));  // bytes of one pass over everything
  const int tensors = 4 * 9 + 3;
  CHECK(steps_of(spec).launches == tensors);
  CHECK(steps_of(spec).bytes == 7 * accesses);
  CHECK_FALSE(steps_of(spec).outside_backward);
  CHECK(steps_of(spec).streams == std::vector{Stream::compute});
  CHECK(of(test::ledger(build_program(spec, 2)).peak["backward"], Owner::optimizer) == 2 * static_cast<std::int64_t>(accesses));
  spec.optimizer.implementation = OptimizerImpl::foreach;
  CHECK(steps_of(spec).launches == 8 * tensors);
  CHECK(steps_of(spec).bytes == 20 * accesses);
  CHECK(of(test::ledger(build_program(spec, 2)).peak["backward"], Owner::optimizer) == 2 * static_cast<std::int64_t>(accesses) + 2 * kTable);
  spec.optimizer.implementation = OptimizerImpl::for_loop;
  CHECK(of(test::ledger(build_program(spec, 2)).peak["backward"], Owner::optimizer) == 2 * static_cast<std::int64_t>(accesses) + 2 * 2 * kTable);
}

TEST_CASE("one rank: the step follows the last kernel of its gradient, that of tied embeddings the embedding's") {
  StepSpec spec = one_rank();
  const auto order = [](const StepSpec& s) {
    const Program p = build_program(s, 2);
    return test::words(p, p.steps[1], {OpKind::launch});
  };
  const auto words = order(spec);
  const auto down = std::find(words.begin(), words.end(), "kernel MmBackward0 weight down");
  REQUIRE(down != words.end());
  CHECK(*(down - 1) == "kernel MmBackward0 input down");  // which still reads the weight
  CHECK(*(down + 1) == "kernel aten::_fused_adamw_");
  spec.model.tied_embeddings = true;
  const auto tied = order(spec);
  const auto head = std::find(tied.begin(), tied.end(), "kernel MmBackward0 weight head");
  CHECK(*(head + 1) != "kernel aten::_fused_adamw_");
  CHECK(tied.back() == "kernel aten::_fused_adamw_");
  CHECK(test::count_of(tied, "kernel aten::_fused_adamw_") == 4 * 9 + 2);
}

TEST_CASE("fsdp2: a group's shards are stepped behind its reduce-scatter, on that stream, and its gradient goes") {
  const StepSpec spec = sharded();
  const std::int64_t local = (4 * kBlock + kRoot) / 32;
  const Steps steps = steps_of(spec);
  CHECK(steps.launches == 4 * 9 + 3);
  CHECK(steps.bytes == 28.0 * static_cast<double>(local));
  CHECK_FALSE(steps.outside_backward);
  CHECK(steps.streams == std::vector{Stream::reduce_scatter});
  auto l = test::ledger(build_program(spec, 2));
  // Block 0's gradients and the head's, which wait for the root's post-backward; no shard of the blocks behind.
  CHECK(of(l.peak["backward"], Owner::gradients) == 2 * kBlock + 2 * (kTable + 4096));
  CHECK(of(l.at_end["backward"], Owner::gradients) == 0);
  CHECK(of(l.at_end["optimizer"], Owner::optimizer) == 8 * local);
  const Program p = build_program(spec, 2);
  const auto words = test::words(p, p.steps[1], {OpKind::launch, OpKind::collective});
  const auto first = std::find(words.begin(), words.end(), "RS b3");
  REQUIRE(first != words.end());
  CHECK(*(first + 1) == "kernel aten::to sharded gradient");
  for (int i = 2; i < 11; ++i) CHECK(*(first + i) == "kernel aten::_fused_adamw_");
  CHECK(*(first + 11) != "kernel aten::_fused_adamw_");
  for (const Op& op : p.slice(p.steps[0])) {  // the moments are made where the step runs
    if (op.kind == OpKind::alloc && p.buffers[op.id].owner == Owner::optimizer) CHECK(op.stream == Stream::reduce_scatter);
  }
}

TEST_CASE("fsdp2: under hybrid sharding behind the all-reduce; the next step begins when all are done; programs are clean") {
  StepSpec spec = sharded();
  spec.policy.sharding = Sharding::hybrid_shard;
  CHECK(steps_of(spec).streams == std::vector{Stream::all_reduce});
  for (const auto reduce : {hw::Dtype::bf16, hw::Dtype::fp32}) {  // with fp32 the reduce-scatter's output is the gradient itself, of another pool
    spec.precision.reduce = reduce;
    const Program p = build_program(spec, 4);
    CHECK(check(p).empty());
    CHECK(p.steps[1] == p.steps[3]);
    auto l = test::ledger(p);
    CHECK(of(l.at_end["backward"], Owner::gradients) == 0);
  }
  CHECK(check(build_program(sharded(), 3)).empty());
  CHECK(check(build_program(one_rank(), 3)).empty());
}

/// A group that were gathered again behind its own backward would read what the optimizer is writing.
void expect_no_late_gathers(const ModelShape& model, KernelSet set, Matmul matmul) {
  for (const Wrap wrap : {Wrap::size_based, Wrap::attention_and_ffn, Wrap::linears}) {
    for (const std::int64_t depth : {0, 2}) {
      for (const RecomputeMode recompute : {RecomputeMode::none, RecomputeMode::share}) {
        StepSpec spec = sharded();
        spec.model = model, spec.model.layers = 2;
        spec.batch.seq_len = 2048;
        spec.kernels.set = set;
        if (set == KernelSet::native) spec.precision = {hw::Dtype::fp32, hw::Dtype::fp32, hw::Dtype::fp32};
        spec.precision.matmul = matmul;
        spec.recompute.mode = recompute, spec.recompute.nesting = Nesting::outside;
        spec.policy.wrap = wrap, spec.policy.min_unit_parameters = 10'000'000;
        spec.policy.forward_prefetch_depth = recompute == RecomputeMode::none ? depth : 0, spec.policy.backward_prefetch_depth = depth + 1;
        if (broken_rule(spec)) continue;
        CAPTURE(model.hidden);
        CAPTURE(static_cast<int>(set));
        CAPTURE(static_cast<int>(matmul));
        CAPTURE(static_cast<int>(wrap));
        CAPTURE(depth);
        CAPTURE(static_cast<int>(recompute));
        const auto findings = check(build_program(spec, 3));
        CHECK_MESSAGE(findings.empty(), (findings.empty() ? "" : findings.front().text));
      }
    }
  }
}

TEST_CASE("fsdp2: every block's backward passes its units in the reverse order of the forward, so prefetching gathers none again behind its step") {
  for (const ModelShape& model : {test::llama2_7b(), test::mpt_7b(), test::falcon_7b(), test::gemma2_9b(), test::mixtral_8x7b()}) {
    for (const KernelSet set : {KernelSet::pytorch_eager, KernelSet::pytorch_compile, KernelSet::native}) expect_no_late_gathers(model, set, Matmul::param);
  }
  for (const ModelShape& model : {test::llama2_7b(), test::falcon_7b(), test::gemma2_9b()}) {
    for (const Matmul matmul : {Matmul::fp8_tensorwise, Matmul::fp8_delayed, Matmul::fp8_blockwise})
      expect_no_late_gathers(model, KernelSet::pytorch_compile, matmul);
  }
}

TEST_CASE("adapters alone have steps; frozen parts have none") {
  StepSpec spec = sharded();
  spec.model.lora_rank = 8;
  CHECK(steps_of(spec).launches == 4 * 2 * 2);  // A and B beside q and v
  spec.model.lora_rank = 0;
  spec.model.frozen_embedding = true, spec.model.frozen_blocks = 1;
  CHECK(steps_of(spec).launches == 3 * 9 + 2);
  CHECK(check(build_program(spec, 3)).empty());
}

TEST_CASE("what needs all gradients at once is refused by its place") {
  const auto refused = [](StepSpec spec, void (*change)(StepSpec&)) {
    change(spec);
    const auto broken = broken_rule(spec);
    return broken ? std::string(broken->key) + ": " + broken->what : std::string();
  };
  CHECK(refused(sharded(), [](StepSpec&) {}).empty());
  const std::string key = "/optimizer/in_backward: ";
  CHECK(refused(sharded(), [](StepSpec& s) { s.optimizer.clip_grad_norm = true; }) == key + "the global norm is known only when the backward is over");
  CHECK(refused(sharded(), [](StepSpec& s) { s.batch.grad_accum = 2; }) == key + "gradients that are used at once can't be accumulated");
  CHECK(refused(sharded(), [](StepSpec& s) { s.policy.framework = Framework::fsdp1; }).find(key + "\"fsdp1\" gives") == 0);
  CHECK(refused(sharded(), [](StepSpec& s) { s.policy.framework = Framework::zero2; }).find(key + "DeepSpeed") == 0);
  CHECK(refused(sharded(), [](StepSpec& s) { s.policy.cpu_offload = CpuOffload::parameters; }).find(key + "hooks would run before") == 0);
  CHECK(refused(sharded(), [](StepSpec& s) { s.kernels.set = KernelSet::fixed; }).find(key + "fixed costs") == 0);
  CHECK(refused(sharded(), [](StepSpec& s) { s.optimizer.zero_grad_set_to_none = false; }).find("/optimizer/zero_grad_set_to_none: ") == 0);
  CHECK(refused(sharded(), [](StepSpec& s) { s.precision.param = hw::Dtype::fp16, s.precision.grad_scaler = true; }).find(key + "GradScaler") == 0);
  CHECK(refused(one_rank(), [](StepSpec& s) { s.world = {2, 1}; }).find(key + "hooks of parameters run before \"ddp\" has reduced") == 0);
  CHECK(refused(one_rank(), [](StepSpec& s) { s.policy.gradient_as_bucket_view = true; }).find("/policy/gradient_as_bucket_view: ") == 0);
  CHECK(refused(one_rank(), [](StepSpec& s) { s.policy.bucket_cap = 1 << 20; }).find("/policy/bucket_cap: ") == 0);
}

}  // namespace stepcast::program
