// Programs of native kernels: every launch says what it computes, on buffers that it names; what native kernels have no use for is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "hw_models/input_error.hpp"
#include "program/build.hpp"
#include "program/model.hpp"
#include "program/validate.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

StepSpec native(ModelShape model) {
  StepSpec spec = test::reference_step(model);
  spec.model.layers = 2;
  spec.kernels.set = KernelSet::native;
  spec.kernels.loss = Loss::fused;
  spec.optimizer.implementation = OptimizerImpl::fused;
  return spec;
}

/// Launches of all ops, with their calls.
template <class F>
void for_launches(const Program& program, F f) {
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::launch) f(op);
  }
}

TEST_CASE("every launch says what it computes, and its parts lie within their buffers") {
  for (const Framework framework : {Framework::fsdp1, Framework::fsdp2, Framework::ddp}) {
    for (const ModelShape& model : {test::llama3_8b(), test::gpt2_xl()}) {
      StepSpec spec = native(model);
      spec.policy.framework = framework;
      spec.batch.seq_len = 128;
      if (framework == Framework::ddp) spec.precision.reduce = spec.precision.master;
      const Program program = build_program(spec, 3);
      for_launches(program, [&](const Op& op) {
        CAPTURE(program.kernels[op.id].op);
        REQUIRE(op.count > 0);
        for (const Part& part : program.calls[op.count - 1].parts) {
          if (part.buffer == kNoPart) continue;
          const std::int64_t end = part.begin + part.per_rank * (part.group - 1) + part.count;
          CHECK(end * hw::bytes_per_element(part.dtype) <= program.buffers[part.buffer].bytes);
        }
      });
    }
  }
}

TEST_CASE("other kernel sets carry no calls") {
  const Program program = build_program(test::reference_step(), 2);
  CHECK(program.calls.empty());
  CHECK(program.parameters.empty());
  for_launches(program, [](const Op& op) { CHECK(op.count == 0); });
}

TEST_CASE("the parameters of a program are the model's, in its order, each element on one rank") {
  for (const Framework framework : {Framework::fsdp1, Framework::fsdp2}) {
    StepSpec spec = native(test::llama2_7b());
    spec.policy.framework = framework;
    const Program program = build_program(spec, 1);
    std::int64_t first = 0;
    for (const ParameterEntry& e : program.parameters) {
      CHECK(e.first == first);
      first += e.elements;
      CHECK(e.ranks == 32);
      CHECK(e.begin + e.elements <= e.shard * e.ranks);
    }
    CHECK(first == parameters(spec.model));
    CHECK(program.parameters.front().name == "embedding.weight");
    CHECK(program.parameters.back().name == "head.weight");
  }
}

TEST_CASE("averaging is written where NCCL averages") {
  StepSpec spec = native(test::llama2_7b());
  const auto averages = [](const Program& program) {
    return std::count_if(program.collectives.begin(), program.collectives.end(), [](const CollectiveEntry& e) { return e.average; });
  };
  CHECK(averages(build_program(spec, 1)) == 0);  // FSDP1 divides by itself
  spec.policy.framework = Framework::fsdp2;
  CHECK(averages(build_program(spec, 1)) == 2);  // the reduce-scatters of blocks and root
}

TEST_CASE("what native kernels have no use for is refused by its name") {
  const auto refused = [](auto change, const std::string& key) {
    StepSpec spec = native(test::llama3_8b());
    change(spec);
    const auto broken = broken_rule(spec);
    REQUIRE(broken.has_value());
    CHECK(broken->key == key);
  };
  refused([](StepSpec& s) { s.policy.framework = Framework::zero3; }, "/policy/framework");
  refused([](StepSpec& s) { s.policy.cpu_offload = CpuOffload::parameters; }, "/policy/cpu_offload");
  refused([](StepSpec& s) { s.input.sample_bytes = 4096; }, "/loader/sample_bytes");
  refused([](StepSpec& s) { s.optimizer.implementation = OptimizerImpl::foreach; }, "/optimizer/implementation");
  refused([](StepSpec& s) { s.model.experts = 4, s.model.active_experts = 2; }, "/model/experts/count");
  refused([](StepSpec& s) { s.model.positions = Positions::alibi; }, "/model/positions");
  refused([](StepSpec& s) { s.model.clip_qkv = true; }, "/model/clip_qkv");
  refused([](StepSpec& s) { s.model.layout = BlockLayout::parallel; }, "/model/layout");
  refused([](StepSpec& s) { s.model.attention_softcap = true; }, "/model/softcaps/attention");
  refused([](StepSpec& s) { s.model.logit_softcap = true; }, "/model/softcaps/logits");
  refused([](StepSpec& s) { s.model.scaled_embedding = true; }, "/model/scaled_embedding");
  refused([](StepSpec& s) { s.model.head_dim = 127; }, "/model/head_dim");
  refused([](StepSpec& s) { s.kernels.attention = Attention::unfused; }, "/kernels/attention");
  refused([](StepSpec& s) { s.kernels.causal_skip = false; }, "/kernels/causal_skip");
  refused([](StepSpec& s) { s.kernels.fused_norm = true; }, "/kernels/fused_norm");
  refused([](StepSpec& s) { s.kernels.expand_kv = false; }, "/kernels/expand_kv");
  refused([](StepSpec& s) { s.kernels.loss = Loss::eager_fp32; }, "/kernels/loss");
  refused([](StepSpec& s) { s.kernels.keep_logits = true; }, "/kernels/keep_logits");
  StepSpec half = native(test::llama2_7b());
  half.precision.param = hw::Dtype::fp16;
  CHECK_THROWS_AS(build_program(half, 1), InputError);
  StepSpec eager = test::reference_step();
  eager.precision.param = hw::Dtype::fp64;
  CHECK_THROWS_AS(build_program(eager, 1), InputError);
}

}  // namespace
}  // namespace stepcast::program
