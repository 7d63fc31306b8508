// What native kernels can run: settings that they have no use for are refused, not ignored. See validate.hpp; test: tests/unit/native_test.cpp.
#include "program/validate.hpp"

namespace stepcast::program {
namespace {

using Broken = std::optional<BrokenRule>;

Broken model_rule(const ModelShape& m) {
  const char* what = "native kernels do not know it yet";
  if (m.experts > 0) return BrokenRule{"/model/experts/count", what, ""};
  if (m.lora_rank > 0) return BrokenRule{"/model/lora_rank", what, ""};
  if (has_frozen_parts(m)) return BrokenRule{"/model/frozen", what, ""};
  if (m.positions == Positions::alibi) return BrokenRule{"/model/positions", what, "use \"rope\", \"learned\" or \"none\""};
  if (m.clip_qkv) return BrokenRule{"/model/clip_qkv", what, ""};
  if (m.layout != BlockLayout::sequential) return BrokenRule{"/model/layout", what, "use \"sequential\""};
  if (m.attention_softcap) return BrokenRule{"/model/softcaps/attention", what, ""};
  if (m.logit_softcap) return BrokenRule{"/model/softcaps/logits", what, ""};
  if (m.scaled_embedding) return BrokenRule{"/model/scaled_embedding", what, ""};
  if (m.positions == Positions::rope && m.head_dim % 2 != 0) return BrokenRule{"/model/head_dim", "rotary positions turn pairs: it must be even", ""};
  return {};
}

Broken kernel_rule(const KernelChoice& kernels) {
  if (kernels.attention == Attention::unfused) return BrokenRule{"/kernels/attention", "native attention is fused", "leave it out"};
  if (!kernels.causal_skip) return BrokenRule{"/kernels/causal_skip", "native attention always skips what is masked", "leave it out"};
  if (kernels.fused_norm) return BrokenRule{"/kernels/fused_norm", "native norms are always fused", "leave it out"};
  if (!kernels.expand_kv) return BrokenRule{"/kernels/expand_kv", "native attention never expands keys and values", "leave it out"};
  if (kernels.loss != Loss::fused) return BrokenRule{"/kernels/loss", "the native loss is \"fused\"", "leave it out"};
  if (kernels.keep_logits) return BrokenRule{"/kernels/keep_logits", "the native loss writes its gradient in the place of the logits", "leave it out"};
  return {};
}

}  // namespace

std::optional<BrokenRule> broken_native_rule(const StepSpec& spec) {
  if (is_zero(spec.policy.framework)) return BrokenRule{"/policy/framework", "native kernels run under \"fsdp1\", \"fsdp2\" and \"ddp\" so far", ""};
  if (spec.policy.cpu_offload != CpuOffload::none) return BrokenRule{"/policy/cpu_offload", "native kernels keep everything on the device so far", ""};
  if (spec.precision.matmul != Matmul::param) return BrokenRule{"/precision/matmul", "native kernels multiply in the type of the parameters", "use \"param\""};
  if (spec.precision.grad_scaler) return BrokenRule{"/precision/grad_scaler", "native kernels have no fp16, which alone needs it", "leave it out"};
  if (spec.input.sample_bytes) return BrokenRule{"/loader/sample_bytes", "native kernels train on tokens", "leave it out"};
  if (spec.optimizer.implementation != OptimizerImpl::fused)
    return BrokenRule{"/optimizer/implementation", "the native optimizer is \"fused\"", "leave it out"};
  if (Broken broken = model_rule(spec.model)) return broken;
  return kernel_rule(spec.kernels);
}

}  // namespace stepcast::program
