// A block: attention and feed-forward (or experts) with their norms and residual additions, in each of the three layouts.
#include <optional>

#include "program/blocks/attention.hpp"
#include "program/blocks/dropout.hpp"
#include "program/blocks/experts.hpp"
#include "program/blocks/feed_forward.hpp"
#include "program/blocks/lists.hpp"
#include "program/blocks/norm.hpp"

namespace stepcast::program {
namespace {

class Block {
 public:
  Block(const StepSpec& spec, Layer& layer, std::int64_t window, Training training)
      : w_(spec, layer, training != Training::all),
        training_(training),
        layout_(spec.model.layout),
        norm1_(w_, "norm1"),
        norm1_post_(w_, "norm1_post"),
        norm2_(w_, "norm2"),
        norm2_post_(w_, "norm2_post"),
        projection_(w_),
        attention_(w_, window),
        feed_forward_(w_),
        dropout1_(w_, "dropout1", spec.model.hidden_dropout),
        dropout2_(w_, "dropout2", spec.model.hidden_dropout),
        out_{"out", w_.size.query_width, w_.size.hidden, spec.model.output_bias} {
    if (spec.model.experts > 0) experts_.emplace(w_);
    const std::int64_t bytes = w_.size.tokens * w_.size.hidden * w_.size.element;
    const auto port = [&](const char* name, Lives lives) { return layer.tensor(name, bytes, Owner::activations, lives); };
    ports_.params = w_.params;
    ports_.input = port("input", Lives::input);
    ports_.output = port("output", Lives::output);
    ports_.d_output = port("d_output", Lives::input);
    ports_.d_input = port("d_input", Lives::output);
  }

  Ports eager() {
    layout_ == BlockLayout::parallel ? eager_parallel() : eager_sequential();
    return finish();
  }

  /// Pointwise work is fused; the backward rebuilds what pointwise kernels need, and reads what weight gradients need: Inductor's partitioner never recomputes a tensor
  /// that the backward would have to write out for a GEMM (torch/_functorch/partitioners.py).
  Ports compiled() {
    layout_ == BlockLayout::parallel ? compiled_parallel() : compiled_sequential();
    return finish();
  }

 private:
  [[nodiscard]] Slot hidden(const char* name) { return w_.tokens_by(name, w_.size.hidden); }
  [[nodiscard]] bool sandwich() const { return layout_ == BlockLayout::sandwich; }
  Slot attend(Slot normed) { return w_.linear(out_, attended_ = attention_.forward(projection_.forward(normed))); }
  Slot attend_backward(Slot gradient) { return projection_.backward(attention_.backward(w_.linear_backward(out_, gradient, attended_))); }
  Slot feed(Slot normed) { return experts_ ? experts_->forward(normed) : feed_forward_.forward(normed); }
  Slot feed_backward(Slot gradient) { return experts_ ? experts_->backward(gradient) : feed_forward_.backward(gradient); }

  void eager_sequential() {
    const Slot attended = attend(norm1_.forward(ports_.input));
    const Slot middle = dropout1_.add_residual(hidden("middle"), ports_.input, sandwich() ? norm1_post_.forward(attended) : attended);
    const Slot fed = feed(norm2_.forward(middle));
    dropout2_.add_residual(ports_.output, middle, sandwich() ? norm2_post_.forward(fed) : fed);
    w_.layer.begin_backward();
    if (training_ == Training::none) return;
    const Slot d_fed = sandwich() ? norm2_post_.backward(ports_.d_output) : dropout2_.backward(ports_.d_output);
    const Slot d_middle = w_.add("aten::add residual gradient", hidden("d_middle"), ports_.d_output, norm2_.backward(feed_backward(d_fed)));
    const Slot d_normed = attend_backward(sandwich() ? norm1_post_.backward(d_middle) : dropout1_.backward(d_middle));
    w_.add("aten::add residual gradient", ports_.d_input, d_middle, norm1_.backward(d_normed));
  }

  /// As Hugging Face's Falcon joins them: the feed-forward's output plus the attention's, plus the input.
  void eager_parallel() {
    const Slot normed = norm1_.forward(ports_.input);
    const Slot attended = attend(normed);
    const Slot both = w_.add("aten::add branches", hidden("both"), feed(normed), attended);
    w_.add("aten::add residual", ports_.output, ports_.input, both);
    w_.layer.begin_backward();
    if (training_ == Training::none) return;
    const Slot from_feed = feed_backward(ports_.d_output);
    const Slot d_normed = w_.add("aten::add branch gradients", hidden("d_both"), from_feed, attend_backward(ports_.d_output));
    w_.add("aten::add residual gradient", ports_.d_input, ports_.d_output, norm1_.backward(d_normed));
  }

  Slot attend_compiled(Slot normed) { return w_.linear(out_, attended_ = attention_.forward(projection_.forward_compiled(normed))); }
  std::vector<Slot> attend_backward_compiled(Slot gradient) {
    return projection_.input_gradients_compiled(attention_.backward(w_.linear_backward(out_, gradient, attended_)));
  }
  /// The norm behind a branch, if there is one.
  Slot after(Norm& norm, Slot branch) { return sandwich() ? norm.forward_compiled(branch, kNoSlot, kNoSlot) : branch; }
  Slot after_backward(Norm& norm, Slot gradient, const char* name) { return sandwich() ? norm.backward_compiled({gradient}, kNoSlot, hidden(name)) : gradient; }

  /// Experts break the graph (experts.hpp): norm, attention and router are in the first part, every expert is one of its own.
  Slot feed_compiled(Slot normed) { return experts_ ? experts_->forward_compiled(normed) : feed_forward_.forward_compiled(normed); }
  std::vector<Slot> feed_backward_compiled(Slot gradient) {
    return experts_ ? experts_->input_gradients_compiled(gradient) : feed_forward_.input_gradients_compiled(gradient);
  }
  void feed_weights_compiled() {
    if (!experts_) feed_forward_.weight_gradients_compiled();
  }

  void compiled_sequential() {
    const Slot attended = after(norm1_post_, attend_compiled(norm1_.forward_compiled(ports_.input, kNoSlot, kNoSlot)));
    const Slot middle = hidden("middle");
    const Slot normed = norm2_.forward_compiled(ports_.input, attended, middle);
    w_.add("triton_poi_fused_add", ports_.output, middle, after(norm2_post_, feed_compiled(normed)));
    w_.layer.begin_backward();
    if (training_ == Training::none) return;
    const Slot d_fed = after_backward(norm2_post_, ports_.d_output, "d_fed");
    const Slot d_middle = norm2_.backward_compiled(feed_backward_compiled(d_fed), ports_.d_output, hidden("d_middle"));
    feed_weights_compiled();
    const std::vector<Slot> d_normed = attend_backward_compiled(after_backward(norm1_post_, d_middle, "d_attended_out"));
    norm1_.backward_compiled(d_normed, d_middle, ports_.d_input);
    projection_.weight_gradients_compiled();
  }

  void compiled_parallel() {
    const Slot normed = norm1_.forward_compiled(ports_.input, kNoSlot, kNoSlot);
    const Slot attended = attend_compiled(normed);
    w_.elementwise("triton_poi_fused_add", ports_.output, {ports_.input, attended, feed_compiled(normed)});
    w_.layer.begin_backward();
    if (training_ == Training::none) return;
    std::vector<Slot> gradients = feed_backward_compiled(ports_.d_output);
    const std::vector<Slot> of_attention = attend_backward_compiled(ports_.d_output);
    gradients.insert(gradients.end(), of_attention.begin(), of_attention.end());
    norm1_.backward_compiled(gradients, ports_.d_output, ports_.d_input);
    feed_weights_compiled();
    projection_.weight_gradients_compiled();
  }

  Ports finish() {
    ports_.parameter_gradients = w_.parameter_gradients();
    ports_.inner_units = w_.inner_units();
    w_.layer.finish();
    return ports_;
  }

  Writer w_;
  Training training_;
  BlockLayout layout_;
  Norm norm1_, norm1_post_, norm2_, norm2_post_;
  QkvProjection projection_;
  AttentionCore attention_;
  FeedForward feed_forward_;
  Dropout dropout1_, dropout2_;
  std::optional<Experts> experts_;
  Linear out_;
  Slot attended_ = kNoSlot;
  Ports ports_;
};

}  // namespace

Ports write_block(const StepSpec& spec, Layer& layer, std::int64_t window, Training training) {
  if (spec.kernels.set == KernelSet::native) return write_native_block(spec, layer, window);
  Block block(spec, layer, window, training);
  return spec.kernels.set == KernelSet::pytorch_compile ? block.compiled() : block.eager();
}

}  // namespace stepcast::program
