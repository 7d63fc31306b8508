// Rules about the model: each refuses what has no meaning or no kernel, at its key, and lets the rest pass.
#include <doctest/doctest.h>

#include <string>

#include "program/validate.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

std::string key(const StepSpec& spec) {
  const auto broken = broken_rule(spec);
  return broken ? broken->key : "";
}

TEST_CASE("models as published are accepted") {
  for (const ModelShape& model : {test::llama2_7b(), test::mixtral_8x7b(), test::phi3_mini(), test::falcon_7b(), test::gemma2_9b()})
    CHECK(key(test::reference_step(model)) == "");
}

TEST_CASE("experts") {
  StepSpec spec = test::reference_step(test::mixtral_8x7b());
  spec.model.active_experts = 9;
  CHECK(key(spec) == "/model/experts/active");
  spec.model.active_experts = 0;
  CHECK(key(spec) == "/model/experts/active");
  spec.model.active_experts = 8;
  CHECK(key(spec) == "");
  spec.kernels.set = KernelSet::pytorch_compile;
  CHECK(key(spec) == "");
  spec.model.layout = BlockLayout::parallel;
  CHECK(key(spec) == "/kernels/set");
  spec.model.layout = BlockLayout::sequential;
  spec.kernels.set = KernelSet::pytorch_eager;
  spec.model.fused_gate_up = true;
  CHECK(key(spec) == "/model/fused_gate_up");
  spec = test::reference_step(test::mixtral_8x7b());
  spec.batch.seq_len = 3;  // 6 routed tokens for 8 experts
  CHECK(key(spec) == "/model/experts/count");
  spec = test::reference_step();
  spec.model.active_experts = 2;
  CHECK(key(spec) == "/model/experts/active");
}

TEST_CASE("windows and soft caps need a kernel that has them") {
  StepSpec spec = test::reference_step();
  spec.model.sliding_window = 1024;
  for (const Attention kernel : {Attention::flash1, Attention::triton, Attention::efficient}) {
    spec.kernels.attention = kernel;
    CHECK(key(spec) == "/kernels/attention");
  }
  spec.batch.seq_len = 1024;  // the window holds all
  CHECK(key(spec) == "");
  spec.model.attention_softcap = true;
  CHECK(key(spec) == "/kernels/attention");
  spec.kernels.attention = Attention::unfused;
  CHECK(key(spec) == "");
  spec.batch.seq_len = 4096;
  spec.kernels.attention = Attention::flash2;
  CHECK(key(spec) == "");
  spec.kernels.causal_skip = false;
  CHECK(key(spec) == "/kernels/causal_skip");
}

TEST_CASE("what would have no effect") {
  StepSpec spec = test::reference_step();
  spec.model.full_attention_every = 2;
  CHECK(key(spec) == "/model/full_attention_every");
  spec = test::reference_step(test::gpt2_xl());
  spec.model.fused_gate_up = true;
  CHECK(key(spec) == "/model/fused_gate_up");
  spec = test::reference_step();
  spec.model.norm_bias = true;
  CHECK(key(spec) == "/model/biases/norm");
}

}  // namespace
}  // namespace stepcast::program
