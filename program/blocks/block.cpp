// A block: pre-norm attention and feed-forward, each with its residual addition.
#include "program/blocks/attention.hpp"
#include "program/blocks/feed_forward.hpp"
#include "program/blocks/lists.hpp"
#include "program/blocks/norm.hpp"

namespace stepcast::program {
namespace {

class Block {
 public:
  Block(const StepSpec& spec, Layer& layer)
      : w_(spec, layer),
        norm1_(w_, "norm1"),
        norm2_(w_, "norm2"),
        projection_(w_),
        attention_(w_),
        feed_forward_(w_),
        out_{"out", w_.size.query_width, w_.size.hidden, spec.model.output_bias} {
    const std::int64_t bytes = w_.size.tokens * w_.size.hidden * w_.size.element;
    const auto port = [&](const char* name, Lives lives) { return layer.tensor(name, bytes, Owner::activations, lives); };
    ports_.params = w_.params;
    ports_.input = port("input", Lives::input);
    ports_.output = port("output", Lives::output);
    ports_.d_output = port("d_output", Lives::input);
    ports_.d_input = port("d_input", Lives::output);
  }

  Ports eager() {
    const Slot attended = attention_.forward(projection_.forward(norm1_.forward(ports_.input)));
    const Slot middle = w_.add("aten::add residual", hidden("middle"), ports_.input, w_.linear(out_, attended));
    w_.add("aten::add residual", ports_.output, middle, feed_forward_.forward(norm2_.forward(middle)));
    w_.layer.begin_backward();
    const Slot d_middle = w_.add("aten::add residual gradient", hidden("d_middle"), ports_.d_output, norm2_.backward(feed_forward_.backward(ports_.d_output)));
    const Slot d_attended = w_.linear_backward(out_, d_middle, attended);
    const Slot d_normed = projection_.backward(attention_.backward(d_attended));
    w_.add("aten::add residual gradient", ports_.d_input, d_middle, norm1_.backward(d_normed));
    return finish();
  }

  /// Pointwise work is fused; the backward rebuilds what pointwise kernels need, and reads what weight gradients need: Inductor's partitioner never recomputes a tensor
  /// that the backward would have to write out for a GEMM (torch/_functorch/partitioners.py).
  Ports compiled() {
    const Slot attended = attention_.forward(projection_.forward_compiled(norm1_.forward_compiled(ports_.input, kNoSlot, kNoSlot)));
    const Slot middle = hidden("middle");
    const Slot normed = norm2_.forward_compiled(ports_.input, w_.linear(out_, attended), middle);
    w_.add("triton_poi_fused_add", ports_.output, middle, feed_forward_.forward_compiled(normed));
    w_.layer.begin_backward();
    const Slot d_middle = norm2_.backward_compiled(feed_forward_.input_gradients_compiled(ports_.d_output), ports_.d_output, hidden("d_middle"));
    feed_forward_.weight_gradients_compiled();
    const Slot d_attended = w_.linear_backward(out_, d_middle, attended);
    const std::vector<Slot> d_normed = projection_.input_gradients_compiled(attention_.backward(d_attended));
    norm1_.backward_compiled(d_normed, d_middle, ports_.d_input);
    projection_.weight_gradients_compiled();
    return finish();
  }

 private:
  [[nodiscard]] Slot hidden(const char* name) { return w_.tokens_by(name, w_.size.hidden); }
  Ports finish() {
    ports_.parameter_gradients = w_.parameter_gradients();
    w_.layer.finish();
    return ports_;
  }

  Writer w_;
  Norm norm1_, norm2_;
  QkvProjection projection_;
  AttentionCore attention_;
  FeedForward feed_forward_;
  Linear out_;
  Ports ports_;
};

}  // namespace

Ports write_block(const StepSpec& spec, Layer& layer) {
  Block block(spec, layer);
  return spec.kernels.set == KernelSet::pytorch_compile ? block.compiled() : block.eager();
}

}  // namespace stepcast::program
