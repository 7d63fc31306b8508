// The lists of the feed-forward part.
#include "program/blocks/feed_forward.hpp"

namespace stepcast::program {

FeedForward::FeedForward(Writer& writer)
    : w_(writer),
      gated_(writer.spec.model.ffn_kind == FfnKind::swiglu),
      gate_{"gate", writer.size.hidden, writer.size.ffn, writer.spec.model.ffn_bias},
      up_{"up", writer.size.hidden, writer.size.ffn, writer.spec.model.ffn_bias},
      down_{"down", writer.size.ffn, writer.size.hidden, writer.spec.model.ffn_bias} {}

Slot FeedForward::forward(Slot x) {
  x_ = x;
  if (gated_) gate_out_ = w_.linear(gate_, x);
  up_out_ = w_.linear(up_, x);
  if (gated_) {
    silu_ = w_.elementwise("aten::silu", wide("silu"), {gate_out_});
    product_ = w_.elementwise("aten::mul gate", wide("product"), {silu_, up_out_});
  } else {
    product_ = w_.elementwise("aten::gelu", wide("gelu"), {up_out_});
  }
  return w_.linear(down_, product_);
}

Slot FeedForward::backward(Slot gradient) {
  const Slot d_product = w_.linear_backward(down_, gradient, product_);
  if (!gated_) return w_.linear_backward(up_, w_.elementwise("GeluBackward0", wide("d_up"), {d_product, up_out_}), x_);
  // Both kernels are one node of autograd's graph, which gives back what it saved at its end: the second one still holds what the first has read.
  const Slot d_silu = w_.elementwise("MulBackward0 silu", wide("d_silu"), {d_product, up_out_});
  d_up_ = w_.kernel("MulBackward0 up", wide("d_up"), {d_product, silu_, up_out_}, {2 * w_.layer.bytes(d_product), w_.layer.bytes(d_product)});
  d_gate_ = w_.elementwise("SiluBackward0", wide("d_gate"), {d_silu, gate_out_});
  const Slot from_up = w_.linear_backward(up_, d_up_, x_);
  const Slot from_gate = w_.linear_backward(gate_, d_gate_, x_);
  return w_.add("aten::add input gradients", w_.tokens_by("d_ffn_input", w_.size.hidden), from_up, from_gate);
}

Slot FeedForward::forward_compiled(Slot x) {
  x_ = x;
  if (gated_) gate_out_ = w_.linear(gate_, x);
  up_out_ = w_.linear(up_, x);
  product_ = gated_ ? w_.elementwise("triton_poi_fused_silu_mul", wide("product"), {gate_out_, up_out_})
                    : w_.elementwise("triton_poi_fused_gelu", wide("product"), {up_out_});
  return w_.linear(down_, product_);
}

std::vector<Slot> FeedForward::input_gradients_compiled(Slot gradient) {
  const Slot d_product = w_.input_gradient(down_, gradient);
  d_up_ = wide("d_up");
  std::vector<Slot> reads{d_product, up_out_}, writes{d_up_};
  if (gated_) {
    d_gate_ = wide("d_gate");
    reads.push_back(gate_out_);
    writes.push_back(d_gate_);
  }
  w_.kernel(gated_ ? "triton_poi_fused_silu_mul_backward" : "triton_poi_fused_gelu_backward", writes, reads);
  w_.weight_gradient(down_, gradient, product_);
  std::vector<Slot> result;
  if (gated_) result.push_back(w_.input_gradient(gate_, d_gate_));
  result.push_back(w_.input_gradient(up_, d_up_));
  return result;
}

void FeedForward::weight_gradients_compiled() {
  if (gated_) w_.weight_gradient(gate_, d_gate_, x_);
  w_.weight_gradient(up_, d_up_, x_);
}

}  // namespace stepcast::program
