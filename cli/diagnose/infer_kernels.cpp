// Kernels, recomputation and optimizer by names and counts. Test: tests/unit/inference_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/diagnose/infer.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
using profile::Pass;

struct NamedKind {
  const char *part, *kind;
};
// The first that the file mentions. Names of the kernels of each library.
constexpr NamedKind kAttentionNames[] = {{"FlashAttnFwdSm90", "flash3"},         {"flash_attn_3", "flash3"},    {"flash_fwd_kernel", "flash2"},
                                         {"flash_fwd_splitkv_kernel", "flash2"}, {"fmha_cutlass", "efficient"}, {"efficient_attention", "efficient"},
                                         {"fmha_fwd_loop_kernel", "flash1"},     {"fmha_fprop_fp16", "flash1"}, {"_attn_fwd", "triton"},
                                         {"_flash_attention_forward", "flash2"}};

double count_of(const TraceView& trace, Pass pass, bool attention) {
  double count = 0;
  if (attention) {
    for (const profile::CountedAttention& a : trace.work.attention) count += a.pass == pass && !a.call.backward ? static_cast<double>(a.count) : 0;
  } else {
    for (const profile::CountedProduct& p : trace.work.products) count += p.pass == pass && p.product.batch == 1 ? static_cast<double>(p.count) : 0;
  }
  return count;
}

void infer_attention(const TraceView& trace, ScenarioDraft& draft) {
  for (const NamedKind& known : kAttentionNames) {
    if (trace.mentions(known.part)) return draft.seen("/kernels/attention", known.kind, fmt::format("names with {}", known.part));
  }
  if (trace.work.attention.empty() && draft.number("/model/heads") > 0)
    return draft.seen("/kernels/attention", "unfused", "batched products, and no fused attention");
  draft.guess("/kernels/attention", "flash2", "no kernel of attention is recognised by its name");
}

/// Whether grouped keys and values were copied for every query head before the attention.
void infer_expansion(const TraceView& trace, ScenarioDraft& draft) {
  const std::int64_t heads = draft.number("/model/heads"), kv_heads = draft.number("/model/kv_heads");
  if (kv_heads == 0 || kv_heads >= heads) return;
  for (const profile::CountedAttention& a : trace.work.attention) {
    if (a.pass == Pass::forward && !a.call.backward)
      return draft.seen("/kernels/expand_kv", a.call.kv_heads == heads, "heads of attention's keys against their projection's");
  }
}

void infer_set(const TraceView& trace, ScenarioDraft& draft) {
  if (trace.mentions("native::add residual")) return draft.seen("/kernels/set", "native", "names of native kernels");
  infer_expansion(trace, draft);
  if (trace.mentions("triton_poi_fused") || trace.mentions("triton_red_fused") || trace.mentions("triton_per_fused"))
    return draft.seen("/kernels/set", "pytorch-compile", "kernels that TorchInductor wrote");
  draft.guess("/kernels/set", "pytorch-eager", "no kernel of a compiler");
  if (draft.text("/model/norm") == "rms_norm") {
    const bool fused = trace.mentions("rms_norm") || trace.mentions("RMSNorm");
    draft.guess("/kernels/fused_norm", fused, fused ? "an operator for the whole norm" : "the norm's operators one by one");
  }
  if (trace.mentions("complex rope") || trace.mentions("view_as_complex")) draft.seen("/kernels/rope", "complex", "products of complex numbers");
  else if (trace.mentions("fused_rope") || trace.mentions("rotary_kernel")) draft.seen("/kernels/rope", "fused", "a kernel for all of it");
}

void infer_loss(const TraceView& trace, ScenarioDraft& draft) {
  if (draft.find("/kernels/loss")) return;
  if (trace.mentions("liger_cross_entropy")) return draft.guess("/kernels/loss", "chunked", "kernels of a fused linear cross-entropy");
  if (trace.mentions("log_softmax")) return draft.guess("/kernels/loss", "eager_fp32", "log-softmax and its loss are operators of their own");
  if (!trace.mentions("cross_entropy") && !trace.mentions("CrossEntropy")) return;
  const bool wide = trace.mentions("fp32 logits");
  draft.guess("/kernels/loss", wide ? "fused_fp32" : "fused", "one kernel for the loss");
}

void recompute_in_part(const TraceView& trace, double attention, double products, ScenarioDraft& draft) {
  draft.seen("/recompute/mode", "per_op", "some operators of a forward run again in the backward, others don't");
  const double forward = count_of(trace, Pass::forward, false);
  if (products == 0 && trace.work.attention.empty() && draft.number("/model/heads") > 0 && attention == 0) {
    draft.seen("/recompute/ops", draft.text("/kernels/attention") == "unfused" ? "attention" : "all_but_matmul", "no linear layer runs again");
  } else if (products == 0) {
    draft.seen("/recompute/ops", "all_but_matmul", "neither linear layers nor attention run again");
  } else {
    const bool half = products < 0.65 * forward;
    draft.seen("/recompute/ops", half ? "all_but_every_second_matmul" : "all_but_attention",
               fmt::format("{:.0f} % of the products run again, attention does not", 100 * products / forward));
  }
}

/// Every k-th block, if that is as many of the layers; else a share of them.
void recompute_of_blocks(double share, ScenarioDraft& draft) {
  constexpr std::int64_t kUnknown = 100;  // then shares are told apart by percent
  const std::int64_t known = draft.number("/model/layers"), layers = known > 0 ? known : kUnknown;
  const std::int64_t recomputed = std::llround(share * static_cast<double>(layers));
  if (recomputed >= layers) return draft.seen("/recompute/mode", "full", "the attention of every block runs again in the backward");
  const std::int64_t every = layers / std::max<std::int64_t>(1, recomputed);
  const bool each_kth = every > 1 && layers / every == recomputed;
  draft.seen("/recompute/mode", each_kth ? "every_k" : "share", fmt::format("the attention of {:.0f} % of the blocks runs again in the backward", 100 * share));
  if (each_kth) draft.seen("/recompute/every", every, "as /recompute/mode");
  else draft.seen("/recompute/share", share, "as /recompute/mode");
}

void infer_recomputation(const TraceView& trace, ScenarioDraft& draft) {
  const auto kernels = [&](Pass pass) { return trace.device.passes[static_cast<std::size_t>(pass)].kernels; };
  if (kernels(Pass::backward) == 0) return draft.guess("/recompute/mode", "none", "no backward is recognised");
  if (kernels(Pass::recomputation) == 0) return draft.seen("/recompute/mode", "none", "no operator of a forward runs again in the backward");
  const double products = count_of(trace, Pass::recomputation, false), attention = count_of(trace, Pass::recomputation, true);
  const double of_attention = count_of(trace, Pass::forward, true), of_products = count_of(trace, Pass::forward, false);
  if (of_attention > 0 && attention == 0) return recompute_in_part(trace, attention, products, draft);
  const double share = of_attention > 0 ? attention / of_attention : products / of_products;
  if (of_attention == 0 && products == 0) return recompute_in_part(trace, attention, products, draft);
  recompute_of_blocks(share, draft);
}

void infer_optimizer(const TraceView& trace, ScenarioDraft& draft) {
  if (trace.mentions("_fused_adam")) draft.seen("/optimizer/implementation", "fused", "aten::_fused_adamw_");
  else if (trace.mentions("_foreach_addcdiv_") || trace.mentions("_foreach_lerp_"))
    draft.seen("/optimizer/implementation", "foreach", "aten::_foreach_ operators");
  else if (trace.mentions("aten::addcdiv_")) draft.seen("/optimizer/implementation", "for_loop", "aten::addcdiv_ for each tensor");
  if (trace.device.passes[static_cast<std::size_t>(Pass::backward)].kernels == 0) return;
  const bool clips = trace.mentions("linalg_vector_norm") || trace.mentions("_foreach_norm") || trace.mentions("sum_of_squares");
  draft.seen("/optimizer/clip_grad_norm", clips, clips ? "norms of gradients" : "no norm of gradients");
}

}  // namespace

void infer_kernels(const TraceView& trace, ScenarioDraft& draft) {
  infer_set(trace, draft);
  infer_attention(trace, draft);
  infer_loss(trace, draft);
  infer_recomputation(trace, draft);
  infer_optimizer(trace, draft);
}

std::optional<ScenarioDraft> infer_scenario(const profile::RankDiagnosis& rank, const std::optional<scenarios::ImportedModel>& given) {
  const profile::DeviceMetrics* device = nullptr;
  for (const profile::DeviceMetrics& d : rank.devices) {
    if (!device || d.whole_window.compute > device->whole_window.compute) device = &d;
  }
  if (!device) return {};
  const profile::Workload work = profile::workload_of(rank.profile, device->device, profile::Passes(rank.profile));
  const TraceView trace{rank, *device, work};
  ScenarioDraft draft;
  infer_model(trace, given, draft);
  infer_cluster(trace, draft);
  infer_kernels(trace, draft);
  infer_policy(trace, draft);
  infer_loader(trace, draft);
  infer_host(trace, draft);
  return draft;
}

}  // namespace stepcast::cli
