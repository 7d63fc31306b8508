// Projections, clamp, rotary positions and expansion of grouped keys and values.
#include "program/blocks/attention.hpp"

#include <string>

namespace stepcast::program {
namespace {

constexpr auto kCopy = hw::MemoryClass::copy;

}  // namespace

// --- rotary positions; n = bytes of the tensor. x cos + rotate_half(x) sin, cos and sin being small ------------------------------------------------------

Slot Rope::forward(Slot x) {
  switch (w_.spec.kernels.rope) {
    case RopeKernels::rotate_half: break;
    case RopeKernels::complex: return as_complex(x, "");
    case RopeKernels::fused: return w_.elementwise("fused_rope", tensor("rope", bytes_), {x});
  }
  return rotate_half(x);
}

Slot Rope::backward(Slot gradient) {
  switch (w_.spec.kernels.rope) {
    case RopeKernels::rotate_half: break;
    case RopeKernels::complex: return as_complex(gradient, " backward");
    case RopeKernels::fused: return w_.elementwise("fused_rope backward", tensor("d_input", bytes_), {gradient});
  }
  return rotate_half_backward(gradient);
}

/// To fp32, read as complex numbers; times the angles, which are small; back. The derivative is the same with conjugate angles.
Slot Rope::as_complex(Slot x, const char* pass) {
  const std::string suffix(pass);
  const std::int64_t wide = bytes_ / w_.size.element * 4;
  const bool casts = w_.size.element != 4;
  const auto name = [&](const char* what) { return name_ + "." + what + suffix; };
  const Slot fp32 = casts ? w_.elementwise("aten::to rope" + suffix, w_.activation(name("fp32"), wide), {x}) : x;
  const Slot product = w_.elementwise("aten::mul complex rope" + suffix, w_.activation(name("product"), wide), {fp32}, hw::MemoryClass::indexing);
  return casts ? w_.elementwise("aten::to rope result" + suffix, w_.activation(name("rope"), bytes_), {product}) : product;
}

Slot Rope::rotate_half(Slot x) {
  const std::int64_t n = bytes_;
  const Slot negated = w_.kernel("aten::neg rope", tensor("negated", n / 2), {x}, {n / 2, n / 2}, hw::MemoryClass::indexing);
  const Slot rotated = w_.kernel("aten::cat rope", tensor("rotated", n), {negated, x}, {n, n}, hw::MemoryClass::indexing);
  const Slot cosine = w_.kernel("aten::mul cos", tensor("cosine", n), {x}, {n, n}, hw::MemoryClass::indexing);
  const Slot sine = w_.kernel("aten::mul sin", tensor("sine", n), {rotated}, {n, n}, hw::MemoryClass::indexing);
  return w_.add("aten::add rope", tensor("rope", n), cosine, sine);
}

Slot Rope::rotate_half_backward(Slot gradient) {
  const std::int64_t n = bytes_;
  const Slot d_rotated = w_.elementwise("MulBackward0 sin", tensor("d_rotated", n), {gradient}, hw::MemoryClass::indexing);
  const Slot d_upper = w_.kernel("NegBackward0 rope", tensor("d_upper", n / 2), {d_rotated}, {n / 2, n / 2}, hw::MemoryClass::indexing);
  const auto slice_backward = [&](const char* what, Slot half) {  // zeros, then a copy into one half
    const Slot zeros = w_.kernel("SliceBackward0 zeros", tensor(what, n), {}, {0, n});
    return w_.kernel("SliceBackward0 copy", zeros, {half}, {n / 2, n / 2}, hw::MemoryClass::indexing);
  };
  const Slot upper = slice_backward("d_slice_upper", d_upper);
  const Slot lower = slice_backward("d_slice_lower", d_rotated);
  const Slot halves = w_.add("aten::add slices", tensor("d_halves", n), upper, lower);
  const Slot cosine = w_.elementwise("MulBackward0 cos", tensor("d_cosine", n), {gradient}, hw::MemoryClass::indexing);
  return w_.add("aten::add rope gradients", tensor("d_input", n), halves, cosine);
}

Slot Rope::forward_compiled(Slot x, std::int64_t expanded) {
  const std::int64_t n = w_.size.tokens * expanded * w_.size.element;
  return w_.kernel("triton_poi_fused_rope", tensor("rope", n), {x}, {bytes_, n});
}

Slot Rope::backward_compiled(Slot gradient) { return w_.elementwise("triton_poi_fused_rope_backward", tensor("d_input", bytes_), {gradient}); }

// --- projections -----------------------------------------------------------------------------------------------------------------------------------------

QkvProjection::QkvProjection(Writer& writer)
    : w_(writer),
      fused_(writer.spec.model.fused_qkv),
      rope_(writer.spec.model.positions == Positions::rope),
      clip_(writer.spec.model.clip_qkv),
      expands_(writer.spec.model.style == BlockStyle::llama && writer.spec.kernels.expand_kv && writer.size.kv_heads < writer.size.heads),
      q_{"q", writer.size.hidden, writer.size.query_width, writer.spec.model.attention_bias},
      k_{"k", writer.size.hidden, writer.size.kv_width, writer.spec.model.attention_bias},
      v_{"v", writer.size.hidden, writer.size.kv_width, writer.spec.model.attention_bias},
      qkv_{"qkv", writer.size.hidden, writer.size.query_width + 2 * writer.size.kv_width, writer.spec.model.attention_bias},
      rope_q_(writer, "q", writer.size.query_width),
      rope_k_(writer, "k", writer.size.kv_width) {}

/// Clamps in place; its backward masks the gradient by the clamped values, which the attention keeps anyway.
Slot QkvProjection::clamp(Slot x) { return clip_ ? w_.elementwise("aten::clamp_", x, {x}) : x; }

Slot QkvProjection::clamp_gradient(const char* name, Slot gradient, Slot clamped) {
  return w_.elementwise("ClampBackward1", w_.activation(name, w_.layer.bytes(gradient)), {gradient, clamped});
}

Qkv QkvProjection::clamp_gradients(const Qkv& gradient) {
  if (!clip_) return gradient;
  return {clamp_gradient("d_clamp_q", gradient.q, projected_.q), clamp_gradient("d_clamp_k", gradient.k, projected_.k),
          clamp_gradient("d_clamp_v", gradient.v, projected_.v)};
}

/// repeat_kv: a copy of keys (values) for every query head.
Slot QkvProjection::expand(const char* name, Slot x) {
  const std::int64_t token = w_.size.tokens * w_.size.element;
  return w_.kernel("aten::reshape repeat_kv", w_.tokens_by(name, w_.size.query_width), {x}, {token * w_.size.kv_width, token * w_.size.query_width}, kCopy);
}

Slot QkvProjection::reduce(const char* name, Slot gradient) {
  return w_.elementwise("ExpandBackward0 sum", w_.tokens_by(name, w_.size.kv_width), {gradient}, hw::MemoryClass::normalization);
}

/// From a fused projection all three are slices of one tensor.
Qkv QkvProjection::project(Slot x) {
  x_ = x;
  if (fused_) {
    const Slot all = clamp(w_.linear(qkv_, x));
    return projected_ = {all, all, all};
  }
  const Slot q = w_.linear(q_, x), k = w_.linear(k_, x), v = w_.linear(v_, x);
  return projected_ = {clamp(q), clamp(k), clamp(v)};
}

Qkv QkvProjection::forward(Slot x) {
  Qkv result = project(x);
  if (rope_) result = {rope_q_.forward(result.q), rope_k_.forward(result.k), result.v};
  if (expands_) result = {result.q, expand("k_expanded", result.k), expand("v_expanded", result.v)};
  return result;
}

Slot QkvProjection::join(const Qkv& gradient) {
  const Slot joined = w_.elementwise("aten::cat qkv gradients", w_.tokens_by("d_qkv", qkv_.out), {gradient.q, gradient.k, gradient.v}, kCopy);
  return clip_ ? clamp_gradient("d_clamp", joined, projected_.q) : joined;
}

Slot QkvProjection::backward(const Qkv& gradient) {
  Qkv g = gradient;
  if (expands_) g = {g.q, reduce("d_k_reduced", g.k), reduce("d_v_reduced", g.v)};
  if (rope_) g = {rope_q_.backward(g.q), rope_k_.backward(g.k), g.v};
  if (fused_) return w_.linear_backward(qkv_, join(g), x_);
  g = clamp_gradients(g);
  // Autograd's engine takes what the forward made last first, and adds gradients that meet to the one that nobody else holds (InputBuffer::accumulate).
  const Slot from_v = w_.linear_backward(v_, g.v, x_);
  const Slot from_k = w_.linear_backward(k_, g.k, x_);
  const Slot two = w_.add("aten::add_ input gradients", from_v, from_v, from_k);
  const Slot from_q = w_.linear_backward(q_, g.q, x_);
  return w_.add("aten::add_ input gradients", two, two, from_q);
}

Qkv QkvProjection::forward_compiled(Slot x) {
  Qkv result = project(x);
  if (rope_) result = {rope_q_.forward_compiled(result.q, w_.size.query_width), rope_k_.forward_compiled(result.k, kv_width()), result.v};
  else if (expands_) result.k = expand("k_expanded", result.k);
  if (expands_) result.v = expand("v_expanded", result.v);
  return result;
}

std::vector<Slot> QkvProjection::input_gradients_compiled(const Qkv& gradient) {
  Qkv g = gradient;
  if (rope_) g = {rope_q_.backward_compiled(g.q), rope_k_.backward_compiled(g.k), g.v};
  else if (expands_) g.k = reduce("d_k_reduced", g.k);
  if (expands_) g.v = reduce("d_v_reduced", g.v);
  if (!fused_) g = clamp_gradients(g);
  if (fused_) pending_ = {{&qkv_, join(g)}};
  else pending_ = {{&q_, g.q}, {&k_, g.k}, {&v_, g.v}};
  std::vector<Slot> result;
  for (const auto& [linear, of_output] : pending_) result.push_back(w_.input_gradient(*linear, of_output));
  return result;
}

void QkvProjection::weight_gradients_compiled() {
  for (const auto& [linear, of_output] : pending_) w_.weight_gradient(*linear, of_output, x_);
}

}  // namespace stepcast::program
