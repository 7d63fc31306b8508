// The lists of the feed-forward networks.
#include "program/blocks/feed_forward.hpp"

namespace stepcast::program {
namespace {

constexpr auto kElementwise = hw::MemoryClass::elementwise, kStrided = hw::MemoryClass::indexing;

}  // namespace

FeedForward::FeedForward(Writer& writer, const std::string& prefix, const std::string& label, std::int64_t rows)
    : w_(writer),
      prefix_(prefix),
      rows_(rows),
      gated_(writer.spec.model.ffn_kind != FfnKind::gelu),
      fused_(gated_ && writer.spec.model.fused_gate_up),
      activation_(writer.spec.model.ffn_kind == FfnKind::swiglu ? "silu" : "gelu") {
  const auto linear = [&](const char* name, std::int64_t in, std::int64_t out) {
    return Linear{prefix + name, in, out, writer.spec.model.ffn_bias, rows, label + name};
  };
  const std::int64_t h = writer.size.hidden, f = writer.size.ffn;
  gate_ = linear("gate", h, f);
  up_ = linear("up", h, f);
  gate_up_ = linear("gate_up", h, 2 * f);
  down_ = linear("down", f, h);
}

/// Gate and up; from a fused projection both are slices of one tensor.
Slot FeedForward::project(Slot x) {
  x_ = x;
  if (fused_) return gate_out_ = up_out_ = w_.linear(gate_up_, x);
  if (gated_) gate_out_ = w_.linear(gate_, x);
  return up_out_ = w_.linear(up_, x);
}

Slot FeedForward::forward(Slot x) {
  project(x);
  const auto memory = fused_ ? kStrided : kElementwise;
  const std::int64_t n = wide_bytes();
  if (gated_) {
    activated_ = w_.kernel("aten::" + activation_, wide(activation_), {gate_out_}, {n, n}, memory);
    product_ = w_.kernel("aten::mul gate", wide("product"), {activated_, up_out_}, {2 * n, n}, memory);
  } else {
    product_ = w_.elementwise("aten::gelu", wide("gelu"), {up_out_});
  }
  return w_.linear(down_, product_);
}

Slot FeedForward::backward(Slot gradient) {
  const Slot d_product = w_.linear_backward(down_, gradient, product_);
  if (gated_) return backward_gated(d_product);
  return w_.linear_backward(up_, w_.elementwise("GeluBackward0", wide("d_up"), {d_product, up_out_}), x_);
}

Slot FeedForward::backward_gated(Slot d_product) {
  const auto memory = fused_ ? kStrided : kElementwise;
  const std::int64_t n = wide_bytes();
  // Both kernels are one node of autograd's graph, which gives back what it saved at its end: the second one still holds what the first has read.
  const Slot d_activated = w_.kernel("MulBackward0 " + activation_, wide("d_" + activation_), {d_product, up_out_}, {2 * n, n}, memory);
  d_up_ = w_.kernel("MulBackward0 up", wide("d_up"), {d_product, activated_, up_out_}, {2 * n, n});
  const char* derivative = activation_ == "silu" ? "SiluBackward0" : "GeluBackward0";
  d_gate_ = w_.kernel(derivative, wide("d_gate"), {d_activated, gate_out_}, {2 * n, n}, memory);
  if (fused_) return w_.linear_backward(gate_up_, join(d_gate_, d_up_), x_);
  const Slot from_up = w_.linear_backward(up_, d_up_, x_);
  return sum(from_up, w_.linear_backward(gate_, d_gate_, x_));
}

Slot FeedForward::join(Slot d_gate, Slot d_up) {
  return w_.elementwise("aten::cat gate and up gradients", wide("d_gate_up", 2), {d_gate, d_up}, hw::MemoryClass::copy);
}

Slot FeedForward::sum(Slot a, Slot b) { return w_.add("aten::add_ input gradients", a, a, b); }

Slot FeedForward::forward_compiled(Slot x) {
  project(x);
  const std::string op = "triton_poi_fused_" + activation_ + (gated_ ? "_mul" : "");
  product_ = gated_ ? w_.kernel(op, wide("product"), {gate_out_, up_out_}, {2 * wide_bytes(), wide_bytes()}) : w_.elementwise(op, wide("product"), {up_out_});
  return w_.linear(down_, product_);
}

std::vector<Slot> FeedForward::input_gradients_compiled(Slot gradient) {
  const Slot d_product = w_.input_gradient(down_, gradient);
  d_gate_ = d_up_ = fused_ ? wide("d_gate_up", 2) : wide("d_up");
  std::vector<Slot> reads{d_product, up_out_}, writes{d_up_};
  if (gated_ && !fused_) {
    d_gate_ = wide("d_gate");
    reads.push_back(gate_out_);
    writes.push_back(d_gate_);
  }
  w_.kernel("triton_poi_fused_" + activation_ + (gated_ ? "_mul_backward" : "_backward"), writes, reads);
  w_.weight_gradient(down_, gradient, product_);
  if (fused_) return {w_.input_gradient(gate_up_, d_up_)};
  std::vector<Slot> result;
  if (gated_) result.push_back(w_.input_gradient(gate_, d_gate_));
  result.push_back(w_.input_gradient(up_, d_up_));
  return result;
}

void FeedForward::weight_gradients_compiled() {
  if (fused_) return w_.weight_gradient(gate_up_, d_up_, x_);
  if (gated_) w_.weight_gradient(gate_, d_gate_, x_);
  w_.weight_gradient(up_, d_up_, x_);
}

}  // namespace stepcast::program
