// Settings that belong to another framework are refused by name. Test of program/framework_rules.cpp.
#include <doctest/doctest.h>

#include "program/validate.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

/// The key that the rules name, or nothing.
template <class Change>
std::string refused(Framework framework, Change change) {
  StepSpec spec = test::reference_step();
  spec.policy.framework = framework;
  if (framework == Framework::ddp) spec.precision.reduce = spec.precision.master;
  change(spec);
  const auto broken = broken_framework_rule(spec);
  return broken ? broken->key : "";
}

TEST_CASE("defaults are accepted") {
  for (const auto framework : {Framework::fsdp1, Framework::fsdp2, Framework::ddp, Framework::zero1, Framework::zero2, Framework::zero3})
    CHECK(refused(framework, [](StepSpec&) {}).empty());
}

TEST_CASE("settings of the others are refused") {
  for (const auto framework : {Framework::fsdp2, Framework::ddp, Framework::zero1, Framework::zero2, Framework::zero3}) {
    CHECK(refused(framework, [](StepSpec& s) { s.policy.backward_prefetch = BackwardPrefetch::none; }) == "/policy/backward_prefetch");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.forward_prefetch = true; }) == "/policy/forward_prefetch");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.limit_all_gathers = false; }) == "/policy/limit_all_gathers");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.use_orig_params = true; }) == "/policy/use_orig_params");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.sharding = Sharding::shard_grad_op; }) == "/policy/sharding");
  }
  for (const auto framework : {Framework::fsdp1, Framework::ddp, Framework::zero2, Framework::zero3}) {
    CHECK(refused(framework, [](StepSpec& s) { s.policy.reshard_after_forward = kKeepAfterForward; }) == "/policy/reshard_after_forward");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.forward_prefetch_depth = 1; }) == "/policy/forward_prefetch_depth");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.backward_prefetch_depth = 2; }) == "/policy/backward_prefetch_depth");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.unshard_embedding_in_backward = false; }) == "/policy/unshard_embedding_in_backward");
  }
  for (const auto framework : {Framework::fsdp1, Framework::fsdp2, Framework::zero2, Framework::zero3}) {
    CHECK(refused(framework, [](StepSpec& s) { s.policy.bucket_cap = 1 << 20; }) == "/policy/bucket_cap");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.gradient_as_bucket_view = true; }) == "/policy/gradient_as_bucket_view");
  }
  CHECK(refused(Framework::ddp, [](StepSpec& s) { s.precision.reduce = hw::Dtype::bf16; }) == "/precision/reduce");
  CHECK(refused(Framework::ddp, [](StepSpec& s) { s.policy.blocks_per_unit = 2; }) == "/policy/wrap");
}

TEST_CASE("DeepSpeed's settings are refused by the others, those of one stage by the other stages") {
  for (const auto framework : {Framework::fsdp1, Framework::fsdp2, Framework::ddp}) {
    CHECK(refused(framework, [](StepSpec& s) { s.policy.reduce_bucket_size = 1 << 20; }) == "/policy/reduce_bucket_size");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.allgather_bucket_size = 1 << 20; }) == "/policy/allgather_bucket_size");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.overlap_comm = true; }) == "/policy/overlap_comm");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.contiguous_gradients = false; }) == "/policy/contiguous_gradients");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.reduce_scatter = false; }) == "/policy/reduce_scatter");
  }
  for (const auto framework : {Framework::fsdp1, Framework::ddp, Framework::zero1, Framework::zero2}) {
    CHECK(refused(framework, [](StepSpec& s) { s.policy.stage3_prefetch_bucket_size = 0; }) == "/policy/stage3_prefetch_bucket_size");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.stage3_max_live_parameters = 0; }) == "/policy/stage3_max_live_parameters");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.stage3_max_reuse_distance = 0; }) == "/policy/stage3_max_reuse_distance");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.stage3_param_persistence_threshold = 0; }) == "/policy/stage3_param_persistence_threshold");
  }
  CHECK(refused(Framework::zero3, [](StepSpec& s) { s.policy.allgather_bucket_size = 1 << 20; }) == "/policy/allgather_bucket_size");
  CHECK(refused(Framework::zero2, [](StepSpec& s) { s.policy.allgather_bucket_size = 1000; }) == "/policy/allgather_bucket_size");  // millions of calls
  for (const auto framework : {Framework::zero1, Framework::zero2, Framework::zero3}) {
    CHECK(refused(framework, [](StepSpec& s) { s.policy.no_sync = true; }) == "/policy/no_sync");
    CHECK(refused(framework, [](StepSpec& s) { s.precision.master = hw::Dtype::bf16; }) == "/precision/master");
    CHECK(refused(framework, [](StepSpec& s) { s.policy.wrap = Wrap::model; }) == "/policy/wrap");
    CHECK(refused(framework, [](StepSpec& s) { s.kernels.set = KernelSet::fixed; }) == "/policy/framework");
    CHECK(refused(framework, [](StepSpec& s) { s.optimizer.zero_grad_set_to_none = false; }) == "/optimizer/zero_grad_set_to_none");
  }
}

TEST_CASE("what can be offloaded depends on the framework") {
  const auto offload = [](Framework framework, CpuOffload what, OptimizerImpl implementation = OptimizerImpl::fused) {
    return refused(framework, [&](StepSpec& s) { s.policy.cpu_offload = what, s.optimizer.implementation = implementation; });
  };
  for (const auto framework : {Framework::fsdp1, Framework::fsdp2}) {
    CHECK(offload(framework, CpuOffload::parameters).empty());
    CHECK(offload(framework, CpuOffload::optimizer) == "/policy/cpu_offload");
  }
  for (const auto framework : {Framework::zero1, Framework::zero2}) {
    CHECK(offload(framework, CpuOffload::optimizer).empty());
    CHECK(offload(framework, CpuOffload::parameters) == "/policy/cpu_offload");
  }
  CHECK(offload(Framework::zero3, CpuOffload::parameters).empty());
  CHECK(offload(Framework::zero3, CpuOffload::optimizer, OptimizerImpl::foreach) == "/optimizer/implementation");
  CHECK(offload(Framework::ddp, CpuOffload::parameters) == "/policy/cpu_offload");
  CHECK(refused(Framework::fsdp1, [](StepSpec& s) { s.policy.cpu_offload = CpuOffload::parameters, s.policy.sharding = Sharding::no_shard; }) ==
        "/policy/cpu_offload");
  CHECK(refused(Framework::fsdp1, [](StepSpec& s) { s.policy.cpu_offload = CpuOffload::parameters, s.batch.grad_accum = 2; }) == "/policy/cpu_offload");
}

TEST_CASE("an integer reshards among a part of the shard group that lies evenly over its nodes") {
  const auto refuses = [](std::int64_t m, hw::GroupShape world) {
    return !refused(Framework::fsdp2, [&](StepSpec& s) { s.policy.reshard_after_forward = m, s.world = world; }).empty();
  };
  CHECK_FALSE(refuses(8, {8, 4}));
  CHECK_FALSE(refuses(16, {8, 4}));
  CHECK_FALSE(refuses(2, {8, 4}));
  CHECK(refuses(32, {8, 4}));  // all of them: true
  CHECK(refuses(5, {8, 4}));
  CHECK(refuses(64, {8, 4}));
  CHECK(refuses(4, {6, 2}));  // 4 divides 12, but not a node's 6
}

}  // namespace
}  // namespace stepcast::program
