// What surrounds the blocks: embedding, final norm, head and loss.
#include <algorithm>
#include <bit>
#include <string>

#include "program/blocks/dropout.hpp"
#include "program/blocks/lists.hpp"
#include "program/blocks/norm.hpp"

namespace stepcast::program {
namespace {

/// Next-token cross-entropy over T x V logits, with the tensors and the DRAM traffic of three implementations, in bytes per logit of two-byte types:
/// eager in fp32 (56), fused on fp32 logits (44), fused (12), whatever the blocks run: compilers are given blocks. The eager one holds 12 bytes per logit at the end of the forward and in the
/// backward, the one fused on fp32 logits 8: the logits in the compute type go when their name is bound to the fp32 copy, that copy and the shifted one when the
/// forward returns; the backward makes the gradients of log-softmax and shift anew.
class LossKernels {
 public:
  explicit LossKernels(Writer& writer) : w_(writer), elements_(w_.size.tokens * w_.size.vocab), kind_(writer.spec.kernels.loss) {}

  Slot logits() {
    const Lives lives = w_.spec.kernels.keep_logits ? Lives::output : Lives::here;
    return logits_ = w_.layer.tensor("logits", elements_ * w_.size.element, Owner::loss, lives);
  }

  void forward() {
    if (capped() && kind_ != Loss::fused) soft_cap();
    const Slot loss = w_.layer.tensor("loss", w_.size.tokens * 4, Owner::loss);
    if (kind_ == Loss::fused) {
      w_.kernel("cross_entropy", loss, {logits_}, {3 * w_.size.element * elements_, w_.layer.bytes(loss)}, kSoftmax);
      return;
    }
    const Slot fp32 = casts() ? w_.elementwise("aten::to fp32 logits", tensor("logits_fp32", 4), {logits_}) : logits_;
    shifted_ = w_.elementwise("aten::contiguous shifted logits", tensor("shifted", 4), {fp32}, kCopy);
    w_.layer.hold(fp32);
    if (kind_ == Loss::fused_fp32) {
      w_.kernel("cross_entropy", loss, {shifted_}, {4 * elements_, w_.layer.bytes(loss)}, kSoftmax);
      return;
    }
    log_softmax_ = w_.elementwise("aten::log_softmax", tensor("log_softmax", 4), {shifted_}, kSoftmax);
    w_.layer.hold(shifted_);
    w_.kernel("aten::nll_loss", loss, {log_softmax_}, {8 * w_.size.tokens, 4}, hw::MemoryClass::tiny);
  }

  /// Returns the gradient of the logits in the compute type.
  Slot backward() {
    const Slot result = tensor("d_logits", w_.size.element);
    if (kind_ == Loss::fused) {
      const std::int64_t pass = w_.size.element * elements_;
      return w_.kernel("CrossEntropyBackward", result, {logits_}, {2 * pass, pass}, kSoftmax);
    }
    // The shift's derivative: zeros, and a copy into all but each sequence's last row.
    const Slot of_shifted = shifted_gradient(), padded = casts() ? tensor("d_logits_fp32", 4) : result;
    w_.elementwise("SliceBackward0 zeros", padded, {});
    w_.kernel("SliceBackward0 copy", padded, {of_shifted}, {4 * elements_, 4 * elements_}, kCopy);
    if (casts()) w_.elementwise("ToCopyBackward0 logits", result, {padded});
    return capped() ? soft_cap_gradient(result) : result;
  }

 private:
  static constexpr auto kSoftmax = hw::MemoryClass::softmax;
  static constexpr auto kCopy = hw::MemoryClass::copy;

  /// Fused: in the place of the logits. Eager: the one-hot gradient, then that of log-softmax.
  Slot shifted_gradient() {
    if (kind_ == Loss::fused_fp32) return w_.kernel("CrossEntropyBackward", shifted_, {shifted_}, {4 * elements_, 4 * elements_}, kSoftmax);
    const Slot one_hot = w_.elementwise("NllLossBackward0", tensor("d_log_softmax", 4), {});
    return w_.elementwise("LogSoftmaxBackward0", tensor("d_shifted", 4), {one_hot, log_softmax_}, kSoftmax);
  }
  [[nodiscard]] bool casts() const { return w_.size.element != 4; }
  [[nodiscard]] Slot tensor(const char* name, std::int64_t element) { return w_.layer.tensor(name, elements_ * element, Owner::loss); }
  [[nodiscard]] bool capped() const { return w_.spec.model.logit_softcap; }

  /// c tanh(x / c) in the compute type; a fused loss has it in its own kernel.
  void soft_cap() {
    const std::int64_t e = w_.size.element;
    const Slot divided = w_.elementwise("aten::div softcap", tensor("logits_divided", e), {logits_});
    tanh_ = w_.elementwise("aten::tanh softcap", tensor("logits_tanh", e), {divided});
    logits_ = w_.elementwise("aten::mul softcap", tensor("logits_capped", e), {tanh_});
  }
  Slot soft_cap_gradient(Slot gradient) {
    const std::int64_t e = w_.size.element;
    const Slot d_tanh = w_.elementwise("MulBackward0 softcap", tensor("d_logits_tanh", e), {gradient});
    const Slot d_divided = w_.elementwise("TanhBackward0 softcap", tensor("d_logits_divided", e), {d_tanh, tanh_});
    return w_.elementwise("DivBackward0 softcap", tensor("d_logits_uncapped", e), {d_divided});
  }

  Writer& w_;
  std::int64_t elements_;
  Loss kind_;
  Slot logits_ = kNoSlot, tanh_ = kNoSlot, shifted_ = kNoSlot, log_softmax_ = kNoSlot;
};

/// Head and loss together, chunk of tokens by chunk, each to the end: logits, their gradient in their place, the gradients of the input and of the weight. So no logits are
/// kept, and the weight's gradient exists from the forward on. Follows Liger-Kernel, ops/fused_linear_cross_entropy.py, with the chunk's size chosen there.
class ChunkedHead {
 public:
  explicit ChunkedHead(Writer& writer) : w_(writer) {}

  /// Returns the gradient of the input.
  Slot forward(Slot x) {
    const std::int64_t h = w_.size.hidden, v = w_.size.vocab, e = w_.size.element, chunk = chunk_tokens();
    Slot weight_gradient = kNoSlot;
    if (!w_.frozen()) weight_gradient = w_.elementwise("aten::zeros head.weight gradient", w_.parameter_gradient("head.weight", v * h), {});
    const Slot input_gradient = w_.elementwise("aten::zeros input gradient", w_.tokens_by("d_normed_rows", h), {});
    const Slot loss = w_.elementwise("aten::zeros loss", w_.layer.tensor("loss", 4 * w_.size.tokens, Owner::loss), {});
    const Slot logits = w_.layer.tensor("logits_chunk", chunk * v * e, Owner::loss);
    for (std::int64_t begin = 0; begin < w_.size.tokens; begin += chunk) {
      const std::int64_t n = std::min(chunk, w_.size.tokens - begin);
      w_.gemm("aten::mm head chunk", logits, {x, w_.params}, n, v, h);
      w_.kernel("liger_cross_entropy_kernel", logits, {logits, loss}, {2 * n * v * e, n * v * e}, hw::MemoryClass::softmax);
      w_.gradient_gemm("aten::mm input head chunk", input_gradient, {logits, w_.params, input_gradient}, n, h, v);
      if (!w_.frozen()) w_.gradient_gemm("aten::addmm weight head chunk", weight_gradient, {logits, x, weight_gradient}, v, h, n);
    }
    w_.elementwise("aten::sum loss", loss, {loss}, hw::MemoryClass::normalization);
    return input_gradient;
  }

 private:
  /// The power of two from T / ceil(V / h) on.
  [[nodiscard]] std::int64_t chunk_tokens() const {
    const std::int64_t parts = (w_.size.vocab + w_.size.hidden - 1) / w_.size.hidden, least = (w_.size.tokens + parts - 1) / parts;
    return std::min(w_.size.tokens, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(least))));
  }
  Writer& w_;
};

/// Sort-based scatter of token gradients into a table's gradient: zeros, three kernels over the sorted ids, the sum.
void embedding_backward(Writer& w, Slot table_gradient, Slot gradient, Slot ids) {
  const std::int64_t id_bytes = 8 * w.size.tokens;
  w.elementwise("EmbeddingBackward0 zeros", table_gradient, {});
  const Slot sorted =
      w.kernel("EmbeddingBackward0 sort", w.activation("sorted_ids", 2 * id_bytes), {ids}, {4 * id_bytes, 4 * id_bytes}, hw::MemoryClass::indexing);
  const Slot segments = w.kernel("EmbeddingBackward0 unique", w.activation("segments", id_bytes), {sorted}, {id_bytes, id_bytes}, hw::MemoryClass::tiny);
  const Slot offsets = w.kernel("EmbeddingBackward0 offsets", w.activation("offsets", id_bytes), {segments}, {id_bytes, id_bytes}, hw::MemoryClass::tiny);
  const Slot reads[] = {table_gradient, gradient, sorted, offsets};
  hw::KernelShape shape;
  shape.dtype = w.size.dtype;
  shape.memory = hw::MemoryClass::indexing;
  shape.read_bytes = w.layer.bytes(gradient) + 2 * id_bytes;
  shape.write_bytes = w.layer.bytes(gradient);
  w.layer.kernel("EmbeddingBackward0 sum", shape, reads, std::span(&table_gradient, 1));
}

}  // namespace

Ports write_head(const StepSpec& spec, Layer& layer) {
  if (spec.kernels.set == KernelSet::native) return write_native_head(spec, layer);
  Writer w(spec, layer, spec.model.frozen_head);
  Norm norm(w, "norm");
  LossKernels loss(w);
  Ports ports;
  const std::int64_t bytes = w.size.tokens * w.size.hidden * w.size.element;
  ports.params = w.params;
  ports.input = layer.tensor("input", bytes, Owner::activations, Lives::input);
  ports.d_input = layer.tensor("d_input", bytes, Owner::activations, Lives::output);
  const Slot normed = norm.forward(ports.input);
  layer.end_inputs();
  if (spec.kernels.loss == Loss::chunked) {
    const Slot d_normed = ChunkedHead(w).forward(normed);
    layer.begin_backward();
    norm.backward(d_normed, ports.d_input);
    ports.parameter_gradients = w.parameter_gradients();
    layer.finish();
    return ports;
  }
  const Slot logits = w.gemm("aten::mm head", loss.logits(), {normed, w.params}, w.size.tokens, w.size.vocab, w.size.hidden);
  if (spec.kernels.keep_logits) ports.kept_logits = logits;
  loss.forward();
  layer.begin_backward();
  norm.backward(w.linear_backward({.name = "head", .in = w.size.hidden, .out = w.size.vocab, .fp8 = false}, loss.backward(), normed), ports.d_input);
  ports.parameter_gradients = w.parameter_gradients();
  layer.finish();
  return ports;
}

/// Each as Composer's LanguageCrossEntropy: F.cross_entropy under autocast, whose log-softmax keeps the type of the logits and whose loss takes a copy of it in fp32
/// (aten/src/ATen/native/LossNLL.cpp, autocast_mode.cpp); then the count of labels and two sums.
Slot write_train_metrics(const StepSpec& spec, Layer& layer) {
  Writer w(spec, layer);
  const std::int64_t logits_count = w.size.tokens * w.size.vocab, labels = 8 * w.size.tokens;
  const Slot logits = layer.tensor("logits", logits_count * w.size.element, Owner::loss, Lives::outside);
  for (std::int64_t i = 0; i < spec.kernels.train_metrics; ++i) {
    const auto tensor = [&](const char* name, std::int64_t bytes) { return layer.tensor(std::to_string(i) + "." + name, bytes, Owner::loss); };
    const Slot own = w.elementwise("aten::log_softmax metric", tensor("log_softmax", w.layer.bytes(logits)), {logits}, hw::MemoryClass::softmax);
    const Slot fp32 = w.size.element != 4 ? w.elementwise("aten::to metric", tensor("fp32", 4 * logits_count), {own}) : own;
    const Slot loss = w.kernel("aten::nll_loss metric", tensor("loss", 4), {fp32, own}, {labels, 4}, hw::MemoryClass::tiny);
    const Slot counted = w.kernel("aten::ne metric labels", tensor("counted", w.size.tokens), {}, {labels, w.size.tokens}, hw::MemoryClass::tiny);
    const Slot total = w.kernel("aten::sum metric labels", tensor("total", 8), {counted}, {w.size.tokens, 8}, hw::MemoryClass::tiny);
    w.kernel("aten::add_ metric labels", total, {total}, {16, 8}, hw::MemoryClass::tiny);
    w.kernel("aten::add_ metric loss", loss, {loss}, {8, 4}, hw::MemoryClass::tiny);
  }
  layer.begin_backward();
  layer.finish();
  return logits;
}

namespace {

void look_up(Writer& w, const Ports& ports, Slot output, std::int64_t position_bytes) {
  const bool learned = w.spec.model.positions == Positions::learned, scaled = w.spec.model.scaled_embedding;
  constexpr auto kIndexing = hw::MemoryClass::indexing;
  const std::int64_t token_bytes = w.layer.bytes(output);
  Slot x = learned || scaled ? w.tokens_by("token_embedding", w.size.hidden) : output;
  w.kernel("aten::embedding", x, {ports.input, w.params}, {token_bytes, token_bytes}, kIndexing);
  if (scaled) x = w.elementwise("aten::mul embedding", learned ? w.tokens_by("scaled_embedding", w.size.hidden) : output, {x});
  if (!learned) return;
  const Slot positions =
      w.kernel("aten::embedding positions", w.activation("positions", position_bytes), {w.params}, {position_bytes, position_bytes}, kIndexing);
  w.add("aten::add positions", output, x, positions);
}

/// Lookup, scaling, learned positions, dropout; the last of them writes the output.
void embed(Writer& w, Dropout& dropout, const Ports& ports, std::int64_t position_bytes) {
  if (!dropout.on()) return look_up(w, ports, ports.output, position_bytes);
  const Slot x = w.tokens_by("embedded", w.size.hidden);
  look_up(w, ports, x, position_bytes);
  dropout.forward(x, ports.output);
}

void table_backward(Writer& w, Ports& ports, Slot d) {
  const std::int64_t table = w.spec.model.vocab * w.spec.model.hidden;
  const bool tied = w.spec.model.tied_embeddings;
  if (w.spec.model.scaled_embedding) d = w.elementwise("MulBackward0 embedding", w.tokens_by("d_scaled", w.size.hidden), {d});
  const Slot gradient = tied ? w.activation("d_table", table * w.size.element) : w.parameter_gradient("embedding.weight", table);
  embedding_backward(w, gradient, d, ports.input);
  if (!tied) return;
  ports.tied_gradient = w.layer.tensor("head_gradient", table * w.size.element, Owner::gradients, Lives::outside);
  w.elementwise("aten::add tied gradients", ports.tied_gradient, {ports.tied_gradient, gradient});
}

void positions_backward(Writer& w, Slot d_output, std::int64_t position_bytes) {
  Slot d_positions = d_output;
  if (w.size.sequences > 1)
    d_positions = w.elementwise("aten::sum positions", w.activation("d_positions", position_bytes), {d_output}, Writer::Memory::normalization);
  const Slot position_table = w.parameter_gradient("positions.weight", w.spec.model.max_positions * w.spec.model.hidden);
  w.elementwise("EmbeddingBackward0 zeros", position_table, {});
  w.kernel("EmbeddingBackward0 positions", position_table, {position_table, d_positions}, {position_bytes, position_bytes}, hw::MemoryClass::indexing);
}

}  // namespace

Ports write_embedding(const StepSpec& spec, Layer& layer) {
  if (spec.kernels.set == KernelSet::native) return write_native_embedding(spec, layer);
  Writer w(spec, layer, spec.model.frozen_embedding);
  const std::int64_t token_bytes = w.size.tokens * w.size.hidden * w.size.element, position_bytes = w.size.seq_len * w.size.hidden * w.size.element;
  Ports ports;
  ports.params = w.params;
  ports.input = layer.tensor("ids", 16 * w.size.tokens, Owner::input, Lives::outside);
  ports.output = layer.tensor("output", token_bytes, Owner::activations, Lives::output);
  ports.d_output = layer.tensor("d_output", token_bytes, Owner::activations, Lives::input);
  Dropout dropout(w, "dropout", spec.model.hidden_dropout);
  embed(w, dropout, ports, position_bytes);
  layer.begin_backward();
  if (!w.frozen()) {
    const Slot gradient = dropout.backward(ports.d_output);
    table_backward(w, ports, gradient);
    if (spec.model.positions == Positions::learned) positions_backward(w, gradient, position_bytes);
  }
  ports.parameter_gradients = w.parameter_gradients();
  layer.finish();
  return ports;
}

}  // namespace stepcast::program
