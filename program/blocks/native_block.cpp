// A block in native kernels: what is read together is computed together. The gradients of a tensor with several readers are summed by the GEMMs that make them.
// docs/native_kernels.md; test: tests/unit/native_test.cpp, tests/property/train_grid_test.cpp.
#include "program/blocks/attention.hpp"
#include "program/blocks/lists.hpp"
#include "program/blocks/native_norm.hpp"

namespace stepcast::program {
namespace {

/// Queries, keys and values: three tensors, or one with all three side by side in every row.
struct NativeQkv {
  Slot q = kNoSlot, k = kNoSlot, v = kNoSlot;
};

class NativeAttention {
 public:
  NativeAttention(Writer& writer, std::int64_t window)
      : w_(writer),
        fused_(writer.spec.model.fused_qkv),
        rope_(writer.spec.model.positions == Positions::rope),
        window_(window),
        all_(writer.size.query_width + 2 * writer.size.kv_width),
        q_{"q", writer.size.hidden, writer.size.query_width, writer.spec.model.attention_bias},
        k_{"k", writer.size.hidden, writer.size.kv_width, writer.spec.model.attention_bias},
        v_{"v", writer.size.hidden, writer.size.kv_width, writer.spec.model.attention_bias},
        qkv_{"qkv", writer.size.hidden, all_, writer.spec.model.attention_bias},
        out_{"out", writer.size.query_width, writer.size.hidden, writer.spec.model.output_bias} {}

  Slot forward(Slot x) {
    x_ = x;
    in_ = rotate(project(x));
    attended_ = w_.tokens_by("attention", w_.size.query_width);
    lse_ = w_.activation("lse", w_.size.tokens * w_.size.heads * hw::bytes_per_element(w_.size.statistic));
    const Slot writes[] = {attended_, lse_};
    w_.layer.kernel("native::attention", shape(hw::KernelKind::attention_forward), inputs(), writes);
    w_.layer.computes(Function::attention, {query(in_.q), key(in_.k), value(in_.v), w_.part(attended_), w_.statistics(lse_)}, attributes());
    if (w_.spec.recompute.mode == RecomputeMode::per_op) {
      for (const Slot slot : writes) w_.layer.keep(slot);
    }
    return w_.linear(out_, attended_);
  }

  /// Returns the gradient of the input.
  Slot backward(Slot gradient) {
    const Slot d_attended = w_.linear_backward(out_, gradient, attended_);
    const NativeQkv d = gradients();
    std::vector<Slot> reads = inputs(), writes{d.q};
    reads.insert(reads.end(), {d_attended, attended_, lse_});
    if (!fused_) writes.insert(writes.end(), {d.k, d.v});
    w_.layer.kernel("native::attention_backward", shape(hw::KernelKind::attention_backward), reads, writes);
    w_.layer.computes(Function::attention_backward,
                      {w_.part(d_attended), query(in_.q), key(in_.k), value(in_.v), w_.part(attended_), w_.statistics(lse_), query(d.q), key(d.k), value(d.v)},
                      attributes());
    return input_gradient(rotate_back(d));
  }

 private:
  NativeQkv project(Slot x) {
    if (fused_) {
      const Slot all = w_.linear(qkv_, x);
      return {all, all, all};
    }
    const Slot q = w_.linear(q_, x), k = w_.linear(k_, x);
    return {q, k, w_.linear(v_, x)};
  }

  /// In the reverse order of the forward, as autograd does it: who prefetches "the unit before this one" counts on it.
  Slot input_gradient(const NativeQkv& d) {
    if (fused_) return w_.linear_backward(qkv_, d.q, x_);
    const Slot sum = w_.linear_backward(v_, d.v, x_);
    w_.weight_gradient(k_, d.k, x_);
    w_.add_input_gradient(k_, d.k, sum);
    w_.weight_gradient(q_, d.q, x_);
    w_.add_input_gradient(q_, d.q, sum);
    return sum;
  }

  NativeQkv rotate(const NativeQkv& x) {
    if (!rope_) return x;
    if (fused_) return rotated_all(x.q, "qkv_rope", 1);
    return {rope(x.q, "q_rope", w_.size.heads, w_.size.heads, 1), rope(x.k, "k_rope", w_.size.kv_heads, w_.size.kv_heads, 1), x.v};
  }
  NativeQkv rotate_back(const NativeQkv& d) {
    if (!rope_) return d;
    if (fused_) return rotated_all(d.q, "d_qkv_rope", -1);
    return {rope(d.q, "d_q_rope", w_.size.heads, w_.size.heads, -1), rope(d.k, "d_k_rope", w_.size.kv_heads, w_.size.kv_heads, -1), d.v};
  }
  NativeQkv rotated_all(Slot x, const char* name, double direction) {
    const Slot all = rope(x, name, w_.size.heads + w_.size.kv_heads, w_.size.heads + 2 * w_.size.kv_heads, direction);
    return {all, all, all};
  }
  Slot rope(Slot x, const char* name, std::int64_t heads, std::int64_t all_heads, double direction) {
    const Slot result = w_.tokens_by(name, all_heads * w_.size.head_dim);
    w_.elementwise("native::rope", result, {x});
    w_.layer.computes(
        Function::rope, {w_.part(x), w_.part(result)},
        {.rows = w_.size.tokens, .heads = heads, .all_heads = all_heads, .head_dim = w_.size.head_dim, .seq_len = w_.size.seq_len, .factor = direction});
    return result;
  }

  NativeQkv gradients() {
    if (fused_) {
      const Slot all = w_.tokens_by("d_qkv", all_);
      return {all, all, all};
    }
    return {w_.tokens_by("d_q", w_.size.query_width), w_.tokens_by("d_k", w_.size.kv_width), w_.tokens_by("d_v", w_.size.kv_width)};
  }

  [[nodiscard]] std::vector<Slot> inputs() const { return fused_ ? std::vector{in_.q} : std::vector{in_.q, in_.k, in_.v}; }
  [[nodiscard]] Layer::SlotPart query(Slot slot) const { return w_.part(slot); }
  [[nodiscard]] Layer::SlotPart key(Slot slot) const { return w_.part(slot, fused_ ? w_.size.query_width : 0); }
  [[nodiscard]] Layer::SlotPart value(Slot slot) const { return w_.part(slot, fused_ ? w_.size.query_width + w_.size.kv_width : 0); }

  [[nodiscard]] hw::KernelShape shape(hw::KernelKind kind) const {
    return {.kind = kind,
            .dtype = w_.size.dtype,
            .attention = fused_kernel(w_.spec.kernels.attention),
            .causal = true,
            .batch = w_.size.sequences,
            .m = w_.size.seq_len,
            .n = w_.size.heads,
            .k = w_.size.head_dim,
            .kv_heads = w_.size.kv_heads,
            .window = window_};
  }
  [[nodiscard]] Attributes attributes() const {
    return {.rows = w_.size.tokens,
            .heads = w_.size.heads,
            .kv_heads = w_.size.kv_heads,
            .head_dim = w_.size.head_dim,
            .seq_len = w_.size.seq_len,
            .window = window_,
            .stride = fused_ ? all_ : w_.size.query_width,
            .kv_stride = fused_ ? all_ : w_.size.kv_width};
  }

  Writer& w_;
  bool fused_, rope_;
  std::int64_t window_, all_;
  Linear q_, k_, v_, qkv_, out_;
  NativeQkv in_;
  Slot x_ = kNoSlot, attended_ = kNoSlot, lse_ = kNoSlot;
};

class NativeFeedForward {
 public:
  explicit NativeFeedForward(Writer& writer)
      : w_(writer),
        gated_(writer.spec.model.ffn_kind != FfnKind::gelu),
        fused_(gated_ && writer.spec.model.fused_gate_up),
        activation_(writer.spec.model.ffn_kind == FfnKind::swiglu ? Activation::silu : Activation::gelu),
        gate_(linear("gate", writer.size.hidden, writer.size.ffn)),
        up_(linear("up", writer.size.hidden, writer.size.ffn)),
        gate_up_(linear("gate_up", writer.size.hidden, 2 * writer.size.ffn)),
        down_(linear("down", writer.size.ffn, writer.size.hidden)) {}

  Slot forward(Slot x) {
    x_ = x;
    if (fused_) gate_out_ = up_out_ = w_.linear(gate_up_, x);
    if (gated_ && !fused_) gate_out_ = w_.linear(gate_, x);
    if (!fused_) up_out_ = w_.linear(up_, x);
    product_ = w_.tokens_by("product", w_.size.ffn);
    if (gated_) {
      w_.kernel("native::gated", {product_}, {gate_out_, up_out_});
      w_.layer.computes(Function::gated, {w_.part(gate_out_), up_part(up_out_), w_.part(product_)}, attributes());
    } else {
      w_.elementwise("native::gelu", product_, {up_out_});
      w_.layer.computes(Function::gelu, {w_.part(up_out_), w_.part(product_)}, {});
    }
    return w_.linear(down_, product_);
  }

  /// Returns the gradient of the input.
  Slot backward(Slot gradient) {
    const Slot d_product = w_.linear_backward(down_, gradient, product_);
    if (!gated_) {
      const Slot d_up = w_.elementwise("native::gelu_backward", w_.tokens_by("d_up", w_.size.ffn), {d_product, up_out_});
      w_.layer.computes(Function::gelu_backward, {w_.part(d_product), w_.part(up_out_), w_.part(d_up)}, {});
      return w_.linear_backward(up_, d_up, x_);
    }
    const Slot d_gate = w_.tokens_by(fused_ ? "d_gate_up" : "d_gate", (fused_ ? 2 : 1) * w_.size.ffn),
               d_up = fused_ ? d_gate : w_.tokens_by("d_up", w_.size.ffn);
    if (fused_) w_.kernel("native::gated_backward", {d_gate}, {d_product, gate_out_});
    else w_.kernel("native::gated_backward", {d_gate, d_up}, {d_product, gate_out_, up_out_});
    w_.layer.computes(Function::gated_backward, {w_.part(d_product), w_.part(gate_out_), up_part(up_out_), w_.part(d_gate), up_part(d_up)}, attributes());
    if (fused_) return w_.linear_backward(gate_up_, d_gate, x_);
    const Slot sum = w_.linear_backward(up_, d_up, x_);
    w_.weight_gradient(gate_, d_gate, x_);
    w_.add_input_gradient(gate_, d_gate, sum);
    return sum;
  }

 private:
  [[nodiscard]] Linear linear(const char* name, std::int64_t in, std::int64_t out) const { return {name, in, out, w_.spec.model.ffn_bias}; }
  [[nodiscard]] Layer::SlotPart up_part(Slot slot) const { return w_.part(slot, fused_ ? w_.size.ffn : 0); }
  [[nodiscard]] Attributes attributes() const {
    return {.rows = w_.size.tokens, .columns = w_.size.ffn, .activation = activation_, .stride = (fused_ ? 2 : 1) * w_.size.ffn};
  }

  Writer& w_;
  bool gated_, fused_;
  Activation activation_;
  Linear gate_, up_, gate_up_, down_;
  Slot x_ = kNoSlot, gate_out_ = kNoSlot, up_out_ = kNoSlot, product_ = kNoSlot;
};

Slot residual(Writer& w, Slot result, Slot a, Slot b) {
  w.add("native::add residual", result, a, b);
  w.layer.computes(Function::sum, {w.part(a), w.part(b), w.part(result)}, {});
  return result;
}

}  // namespace

Ports write_native_block(const StepSpec& spec, Layer& layer, std::int64_t window) {
  Writer w(spec, layer);
  NativeNorm norm1(w, "norm1"), norm2(w, "norm2");
  NativeAttention attention(w, window);
  NativeFeedForward feed_forward(w);
  const std::int64_t bytes = w.size.tokens * w.size.hidden * w.size.element;
  const auto port = [&](const char* name, Lives lives) { return layer.tensor(name, bytes, Owner::activations, lives); };
  Ports ports;
  ports.params = w.params;
  ports.input = port("input", Lives::input);
  ports.output = port("output", Lives::output);
  ports.d_output = port("d_output", Lives::input);
  ports.d_input = port("d_input", Lives::output);
  const Slot middle = residual(w, w.tokens_by("middle", w.size.hidden), ports.input, attention.forward(norm1.forward(ports.input)));
  residual(w, ports.output, middle, feed_forward.forward(norm2.forward(middle)));
  layer.begin_backward();
  const Slot d_middle = w.tokens_by("d_middle", w.size.hidden);
  norm2.backward(feed_forward.backward(ports.d_output), ports.d_output, d_middle);
  norm1.backward(attention.backward(d_middle), d_middle, ports.d_input);
  ports.parameter_gradients = w.parameter_gradients();
  ports.parameters = w.parameters();
  layer.finish();
  return ports;
}

}  // namespace stepcast::program
