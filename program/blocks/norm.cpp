// The lists of the norms, operator by operator.
#include "program/blocks/norm.hpp"

namespace stepcast::program {
namespace {

constexpr auto kReduction = hw::MemoryClass::normalization;

}  // namespace

Norm::Norm(Writer& writer, std::string name)
    : w_(writer),
      name_(std::move(name)),
      layer_norm_(writer.spec.model.norm == NormKind::layer_norm),
      has_bias_(layer_norm_ && writer.spec.model.norm_bias),
      eager_list_(!layer_norm_ && !writer.spec.kernels.fused_norm) {}

Slot Norm::forward(Slot x) {
  x_ = x;
  if (eager_list_) return forward_eager_rms(x);
  make_statistics();
  const Slot result = full("out");
  w_.kernel(layer_norm_ ? "aten::native_layer_norm" : "aten::rms_norm", {result, statistics_}, {x, w_.params}, kReduction);
  return result;
}

/// In fp32: mean and reciprocal deviation; RMSNorm has the latter alone.
void Norm::make_statistics() { statistics_ = w_.activation(name_ + ".statistics", w_.size.tokens * (layer_norm_ ? 8 : 4)); }

/// x32 = x.float(); normed = (x32 * rsqrt(mean(x32^2) + eps)).to(x.dtype); out = weight * normed. In fp32 the casts are no kernels.
Slot Norm::forward_eager_rms(Slot x) {
  const bool casts = w_.size.element != 4;
  x32_ = casts ? w_.elementwise("aten::to fp32", full_fp32("x32"), {x}) : x;
  const Slot square = w_.elementwise("aten::pow", full_fp32("square"), {x32_}, kReduction);
  const Slot mean = w_.elementwise("aten::mean", per_token("mean"), {square}, kReduction);
  const Slot shifted = w_.elementwise("aten::add eps", per_token("shifted"), {mean}, hw::MemoryClass::tiny);
  statistics_ = w_.elementwise("aten::rsqrt", per_token("rsqrt"), {shifted}, hw::MemoryClass::tiny);
  Slot scaled = w_.elementwise("aten::mul rsqrt", full_fp32("scaled"), {x32_, statistics_}, kReduction);
  normed_ = casts ? w_.elementwise("aten::to", full("normed"), {scaled}) : scaled;
  return w_.elementwise("aten::mul weight", full("out"), {normed_, w_.params}, kReduction);
}

std::vector<Slot> Norm::gradient_slots() {
  std::vector<Slot> slots{w_.parameter_gradient(name_ + ".weight", w_.size.hidden)};
  if (has_bias_) slots.push_back(w_.parameter_gradient(name_ + ".bias", w_.size.hidden));
  return slots;
}

Slot Norm::backward(Slot gradient, Slot result) {
  if (result == kNoSlot) result = full("d_input");
  if (eager_list_) return backward_eager_rms(gradient, result);
  w_.elementwise(layer_norm_ ? "NativeLayerNormBackward0 input" : "RmsNormBackward0 input", result, {gradient, x_, statistics_, w_.params}, kReduction);
  if (!w_.frozen())
    w_.kernel(layer_norm_ ? "NativeLayerNormBackward0 weight" : "RmsNormBackward0 weight", gradient_slots(), {gradient, x_, statistics_}, kReduction);
  return result;
}

/// The operators' derivatives, last operation first.
Slot Norm::backward_eager_rms(Slot gradient, Slot result) {
  const bool casts = w_.size.element != 4;
  // out = weight * normed
  const Slot d_normed = w_.elementwise("MulBackward0 weight, input", full("d_normed"), {gradient, w_.params}, kReduction);
  if (!w_.frozen()) {
    const Slot d_weight = w_.elementwise("MulBackward0 weight", full("d_weight"), {gradient, normed_}, kReduction);
    w_.elementwise("aten::sum weight", gradient_slots()[0], {d_weight}, kReduction);
  }
  const Slot d_scaled = casts ? w_.elementwise("ToCopyBackward0 fp32", full_fp32("d_scaled"), {d_normed}) : d_normed;
  // scaled = x32 * rsqrt
  const Slot d_x = w_.elementwise("MulBackward0 x", full_fp32("d_x"), {d_scaled, statistics_}, kReduction);
  const Slot d_rsqrt_full = w_.elementwise("MulBackward0 rsqrt", full_fp32("d_rsqrt_full"), {d_scaled, x32_}, kReduction);
  const Slot d_rsqrt = w_.elementwise("aten::sum rsqrt", per_token("d_rsqrt"), {d_rsqrt_full}, kReduction);
  // rsqrt: -0.5 * d * rsqrt^3
  const Slot cube = w_.elementwise("RsqrtBackward0 pow", per_token("cube"), {statistics_}, hw::MemoryClass::tiny);
  const Slot half = w_.elementwise("RsqrtBackward0 scale", per_token("half"), {d_rsqrt}, hw::MemoryClass::tiny);
  const Slot d_mean = w_.elementwise("RsqrtBackward0 mul", per_token("d_mean"), {half, cube}, hw::MemoryClass::tiny);
  // mean of squares
  const Slot d_square = w_.elementwise("MeanBackward1", full_fp32("d_square"), {d_mean}, kReduction);
  const Slot power = w_.elementwise("PowBackward0 pow", full_fp32("power"), {x32_}, kReduction);
  const Slot twice = w_.elementwise("PowBackward0 scale", full_fp32("twice"), {power}, kReduction);
  const Slot d_x_square = w_.elementwise("PowBackward0 mul", full_fp32("d_x_square"), {d_square, twice}, kReduction);
  if (!casts) return w_.add("aten::add norm gradients", result, d_x, d_x_square);
  const Slot sum = w_.add("aten::add_ norm gradients", d_x, d_x, d_x_square);
  return w_.elementwise("ToCopyBackward0", result, {sum}, kReduction);
}

Slot Norm::forward_compiled(Slot a, Slot b, Slot sum) {
  make_statistics();
  const Slot result = full("out");
  const bool residual = b != kNoSlot;
  x_ = residual ? sum : a;
  if (residual) w_.kernel("triton_red_fused_add_norm", {result, statistics_, sum}, {a, b, w_.params}, kReduction);
  else w_.kernel("triton_red_fused_norm", {result, statistics_}, {a, w_.params}, kReduction);
  return result;
}

/// One row kernel, then column sums for the weight in two stages.
Slot Norm::backward_compiled(const std::vector<Slot>& gradients, Slot residual, Slot result) {
  std::vector<Slot> reads{x_, statistics_, w_.params};
  reads.insert(reads.end(), gradients.begin(), gradients.end());
  std::vector<Slot> row_reads = reads;
  if (residual != kNoSlot) row_reads.push_back(residual);
  w_.kernel("triton_red_fused_add_norm_backward", {result}, row_reads, kReduction);
  if (w_.frozen()) return result;
  // 64 partial sums per column in fp32: a typical split of Inductor's two-stage reductions.
  const Slot partial = w_.activation(name_ + ".partial_sums", 64 * w_.size.hidden * 4);
  w_.kernel("triton_red_fused_norm_weight_partial", {partial}, reads, kReduction);
  w_.kernel("triton_red_fused_norm_weight", gradient_slots(), {partial}, hw::MemoryClass::tiny);
  return result;
}

}  // namespace stepcast::program
