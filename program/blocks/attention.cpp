// The attention proper, fused and unfused.
#include "program/blocks/attention.hpp"

namespace stepcast::program {
namespace {

constexpr auto kSoftmax = hw::MemoryClass::softmax;
/// Kernels of one fused backward: row sums of dO * O, the main kernel, conversion of dQ (flash-attention, flash_bwd_launch_template.h).
constexpr std::uint32_t kFurtherBackwardKernels = 2;

}  // namespace

hw::AttentionKernel fused_kernel(Attention attention) {
  switch (attention) {
    case Attention::flash1: return hw::AttentionKernel::flash1;
    case Attention::flash2: return hw::AttentionKernel::flash2;
    case Attention::flash3: return hw::AttentionKernel::flash3;
    case Attention::triton: return hw::AttentionKernel::triton;
    case Attention::efficient: return hw::AttentionKernel::efficient;
    case Attention::unfused: break;
  }
  return hw::AttentionKernel::none;
}

AttentionCore::AttentionCore(Writer& writer, std::int64_t window)
    : w_(writer),
      compiled_(writer.spec.kernels.set == KernelSet::pytorch_compile),
      megatron_(writer.spec.kernels.set == KernelSet::megatron),
      llama_(writer.spec.model.style == BlockStyle::llama),
      capped_(writer.spec.model.attention_softcap),
      window_(window),
      kv_heads_(llama_ && writer.spec.kernels.expand_kv ? writer.size.heads : writer.size.kv_heads),
      dropout_(writer, "attention_dropout", writer.spec.model.attention_dropout) {}

Slot AttentionCore::forward(const Qkv& qkv) {
  in_ = qkv;
  if (w_.spec.kernels.attention != Attention::unfused) return forward_fused();
  const Recompute& recompute = w_.spec.recompute;
  if (recompute.mode != RecomputeMode::per_op || recompute.ops != RecomputeOps::attention) return forward_unfused();
  w_.layer.begin_recomputed();
  const Slot result = forward_unfused();
  w_.layer.end_recomputed();
  return result;
}

Qkv AttentionCore::backward(Slot gradient) { return w_.spec.kernels.attention == Attention::unfused ? backward_unfused(gradient) : backward_fused(gradient); }

hw::KernelShape AttentionCore::fused_shape(hw::KernelKind kind) const {
  hw::KernelShape shape;
  shape.kind = kind;
  shape.dtype = w_.size.dtype;
  shape.attention = fused_kernel(w_.spec.kernels.attention);
  shape.causal = w_.spec.kernels.causal_skip;
  shape.batch = w_.size.sequences;
  shape.m = w_.size.seq_len;
  shape.n = w_.size.heads;
  shape.k = w_.size.head_dim;
  shape.kv_heads = kv_heads_;
  shape.window = window_;
  return shape;
}

Qkv AttentionCore::gradients() {
  const std::int64_t kv = kv_heads_ * w_.size.head_dim;
  return {w_.tokens_by("d_q", w_.size.query_width), w_.tokens_by("d_k", kv), w_.tokens_by("d_v", kv)};
}

/// Saves q, k, v, the output and the fp32 log-sum-exp of each row.
Slot AttentionCore::forward_fused() {
  out_ = w_.tokens_by("attention", w_.size.query_width);
  lse_ = w_.activation("lse", w_.size.tokens * w_.size.heads * 4);
  const Slot reads[] = {in_.q, in_.k, in_.v}, writes[] = {out_, lse_};
  w_.layer.kernel("scaled_dot_product_attention", fused_shape(hw::KernelKind::attention_forward), reads, writes);
  if (w_.spec.recompute.mode == RecomputeMode::per_op) {
    for (const Slot slot : writes) w_.layer.keep(slot);
  }
  return out_;
}

Qkv AttentionCore::backward_fused(Slot gradient) {
  const Qkv result = gradients();
  const Slot accumulator = w_.activation("d_q_fp32", w_.size.tokens * w_.size.query_width * 4);
  const Slot reads[] = {gradient, in_.q, in_.k, in_.v, out_, lse_}, writes[] = {result.q, result.k, result.v, accumulator};
  w_.layer.kernel("ScaledDotProductAttentionBackward0", fused_shape(hw::KernelKind::attention_backward), reads, writes, kFurtherBackwardKernels);
  return result;
}

/// b a s s elements.
Slot AttentionCore::scores(const char* what, std::int64_t element) { return w_.activation(what, w_.size.tokens * w_.size.heads * w_.size.seq_len * element); }

Slot AttentionCore::forward_unfused() {
  const std::int64_t s = w_.size.seq_len, d = w_.size.head_dim, batch = w_.size.sequences * w_.size.heads;
  const Slot raw = w_.gemm("aten::bmm scores", scores("scores", w_.size.element), {in_.q, in_.k}, s, s, d, batch);
  probabilities_ = probabilities(raw);
  if (dropout_.on()) probabilities_ = dropout_.forward(probabilities_, scores("dropped", w_.size.element));
  const Slot heads = w_.gemm("aten::bmm values", w_.tokens_by("values", w_.size.query_width), {probabilities_, in_.v}, s, d, s, batch);
  // (b, a, s, d) -> (b, s, a d): a copy, as the transposed view cannot be reshaped.
  out_ = w_.elementwise("aten::contiguous", w_.tokens_by("attention", w_.size.query_width), {heads}, hw::MemoryClass::copy);
  return out_;
}

/// Hugging Face: scale, add the mask, softmax in fp32, cast. MPT "torch": scale, (ALiBi,) build and apply the mask, softmax in the compute type. Compiled, and Megatron's: one kernel.
Slot AttentionCore::probabilities(Slot raw) {
  const std::int64_t e = w_.size.element;
  raw_ = raw;
  if (compiled_) return softmax_ = w_.elementwise("triton_red_fused_softmax", scores("softmax", e), {raw}, kSoftmax);
  if (megatron_) return softmax_ = w_.elementwise("scaled_upper_triang_masked_softmax", scores("softmax", e), {raw}, kSoftmax);
  Slot scaled = w_.elementwise("aten::mul scale", scores("scaled", e), {raw});
  if (capped_) scaled = soft_cap(scaled);
  if (llama_ && w_.spec.model.positions == Positions::alibi) scaled = w_.elementwise("aten::add alibi", scores("biased", e), {scaled});
  if (llama_) {
    const Slot masked = w_.elementwise("aten::add mask", scores("masked", e), {scaled});
    softmax_ = w_.elementwise("aten::softmax fp32", scores("softmax", 4), {masked}, kSoftmax);
    return e == 4 ? softmax_ : w_.elementwise("aten::to probabilities", scores("probabilities", e), {softmax_});
  }
  if (w_.spec.model.positions == Positions::alibi) scaled = w_.elementwise("aten::add alibi", scores("biased", e), {scaled});
  const Slot mask = causal_mask();
  const Slot masked = w_.kernel("aten::masked_fill", scores("masked", e), {scaled, mask}, {w_.layer.bytes(scaled), w_.layer.bytes(scaled)});
  return softmax_ = w_.elementwise("aten::softmax", scores("softmax", e), {masked}, kSoftmax);
}

/// c tanh(x / c).
Slot AttentionCore::soft_cap(Slot raw) {
  const std::int64_t e = w_.size.element;
  const Slot divided = w_.elementwise("aten::div softcap", scores("divided", e), {raw});
  tanh_ = w_.elementwise("aten::tanh softcap", scores("tanh", e), {divided});
  return w_.elementwise("aten::mul softcap", scores("capped", e), {tanh_});
}

Slot AttentionCore::soft_cap_gradient(Slot gradient) {
  const std::int64_t e = w_.size.element;
  const Slot d_tanh = w_.elementwise("MulBackward0 softcap", scores("d_tanh", e), {gradient});
  const Slot d_divided = w_.elementwise("TanhBackward0 softcap", scores("d_divided", e), {d_tanh, tanh_});
  return w_.elementwise("DivBackward0 softcap", scores("d_capped", e), {d_divided});
}

/// s x s, built in every call: fp32 ones, lower triangle, to bool, not.
Slot AttentionCore::causal_mask() {
  const std::int64_t square = w_.size.seq_len * w_.size.seq_len;
  const Slot ones = w_.elementwise("aten::ones mask", w_.activation("mask_ones", 4 * square), {});
  const Slot lower = w_.elementwise("aten::tril mask", w_.activation("mask_lower", 4 * square), {ones});
  const Slot allowed = w_.elementwise("aten::to bool mask", w_.activation("mask_allowed", square), {lower});
  return w_.elementwise("aten::bitwise_not mask", w_.activation("mask", square), {allowed});
}

Qkv AttentionCore::backward_unfused(Slot gradient) {
  const std::int64_t s = w_.size.seq_len, d = w_.size.head_dim, batch = w_.size.sequences * w_.size.heads;
  const Qkv result = gradients();
  w_.layer.recomputed_here();
  const Slot d_probabilities = w_.gradient_gemm("BmmBackward0 probabilities", scores("d_probabilities", w_.size.element), {gradient, in_.v}, s, s, d, batch);
  w_.gradient_gemm("BmmBackward0 values", result.v, {probabilities_, gradient}, s, d, s, batch);
  const Slot d_scores = score_gradient(dropout_.on() ? dropout_.backward(d_probabilities) : d_probabilities);
  w_.gradient_gemm("BmmBackward0 queries", result.q, {d_scores, in_.k}, s, d, s, batch);
  w_.gradient_gemm("BmmBackward0 keys", result.k, {d_scores, in_.q}, s, d, s, batch);
  return result;
}

Slot AttentionCore::score_gradient(Slot d_probabilities) {
  const std::int64_t e = w_.size.element;
  if (compiled_ && capped_)  // the cap's derivative needs the scores themselves
    return w_.elementwise("triton_red_fused_softmax_backward", scores("d_scores", e), {d_probabilities, softmax_, raw_}, kSoftmax);
  if (compiled_) return w_.elementwise("triton_red_fused_softmax_backward", scores("d_scores", e), {d_probabilities, softmax_}, kSoftmax);
  if (megatron_) return w_.elementwise("scaled_upper_triang_masked_softmax backward", scores("d_scores", e), {d_probabilities, softmax_}, kSoftmax);
  Slot d_masked = kNoSlot;
  if (llama_) {
    const Slot d_fp32 = e == 4 ? d_probabilities : w_.elementwise("ToCopyBackward0 probabilities", scores("d_softmax", 4), {d_probabilities});
    d_masked = w_.elementwise("SoftmaxBackward0", scores("d_masked", e), {d_fp32, softmax_}, kSoftmax);
  } else {
    const Slot d_softmax = w_.elementwise("SoftmaxBackward0", scores("d_softmax", e), {d_probabilities, softmax_}, kSoftmax);
    d_masked = w_.elementwise("MaskedFillBackward0", scores("d_masked", e), {d_softmax});
  }
  if (capped_) d_masked = soft_cap_gradient(d_masked);
  return w_.elementwise("MulBackward0 scale", scores("d_scores", e), {d_masked});
}

}  // namespace stepcast::program
