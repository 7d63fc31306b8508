// What surrounds the blocks in native kernels: embedding with positions, final norm, head and loss. The gradient of the logits takes their place.
// docs/native_kernels.md; test: tests/unit/native_test.cpp.
#include "program/blocks/lists.hpp"
#include "program/blocks/native_norm.hpp"

namespace stepcast::program {
namespace {

/// Ids, and behind them labels: int64, as wide as fp64.
Layer::SlotPart ids(const Writer& w, Slot input, std::int64_t which) { return {input, hw::Dtype::fp64, which * w.size.tokens, w.size.tokens}; }

/// From the beginning; the number of the step says where.
Layer::SlotPart metrics_part(Slot metrics) { return {metrics, hw::Dtype::fp64}; }

/// The loss of a step is the mean over all its tokens, so each micro-batch has its share.
double share_of_token(const StepSpec& spec) { return 1.0 / static_cast<double>(tokens(spec.batch) * spec.batch.grad_accum); }

}  // namespace

Ports write_native_head(const StepSpec& spec, Layer& layer) {
  Writer w(spec, layer);
  NativeNorm norm(w, "norm");
  const std::int64_t bytes = w.size.tokens * w.size.hidden * w.size.element;
  Ports ports;
  ports.params = w.params;
  ports.input = layer.tensor("input", bytes, Owner::activations, Lives::input);
  ports.d_input = layer.tensor("d_input", bytes, Owner::activations, Lives::output);
  ports.labels = layer.tensor("labels", 16 * w.size.tokens, Owner::input, Lives::outside);
  ports.metrics = layer.tensor("metrics", 0, Owner::loss, Lives::outside);
  const Attributes attributes{.rows = w.size.tokens, .columns = w.size.vocab, .factor = share_of_token(spec)};
  const Slot normed = norm.forward(ports.input);
  layer.end_inputs();
  const Linear head{"head", w.size.hidden, w.size.vocab};
  const Slot logits = w.linear(head, normed);
  const Slot lse = w.activation("loss_lse", w.size.tokens * hw::bytes_per_element(w.size.statistic));
  w.kernel("native::cross_entropy", {lse, ports.metrics}, {logits, ports.labels, ports.metrics}, hw::MemoryClass::softmax);
  layer.computes(Function::cross_entropy, {w.part(logits), ids(w, ports.labels, 1), w.statistics(lse), metrics_part(ports.metrics)}, attributes);
  layer.begin_backward();
  w.kernel("native::cross_entropy_backward", {logits}, {logits, ports.labels, lse}, hw::MemoryClass::softmax);
  layer.computes(Function::cross_entropy_backward, {w.part(logits), ids(w, ports.labels, 1), w.statistics(lse), w.part(logits)}, attributes);
  norm.backward(w.linear_backward(head, logits, normed), kNoSlot, ports.d_input);
  ports.parameter_gradients = w.parameter_gradients();
  ports.parameters = w.parameters();
  layer.finish();
  return ports;
}

namespace {

void embed(Writer& w, const Ports& ports, const Attributes& attributes) {
  const bool learned = w.spec.model.positions == Positions::learned;
  const Slot table = w.parameter("embedding.weight"), x = learned ? w.tokens_by("token_embedding", w.size.hidden) : ports.output;
  const std::int64_t bytes = w.layer.bytes(ports.output);
  w.kernel("native::embedding", x, {ports.input, table}, {bytes, bytes}, hw::MemoryClass::indexing);
  w.layer.computes(Function::embedding, {ids(w, ports.input, 0), w.part_of(table, w.spec.model.vocab * w.size.hidden), w.part(x)}, attributes);
  if (!learned) return;
  const Slot positions = w.parameter("positions.weight");
  w.elementwise("native::add_positions", ports.output, {x, positions});
  w.layer.computes(Function::add_positions, {w.part(x), w.part_of(positions, w.spec.model.max_positions * w.size.hidden), w.part(ports.output)}, attributes);
}

/// A tied table's gradient is added to the head's.
void embedding_gradient(Writer& w, Ports& ports, Attributes attributes) {
  const std::int64_t table = w.spec.model.vocab * w.spec.model.hidden;
  attributes.accumulate = w.spec.model.tied_embeddings;
  if (attributes.accumulate) ports.tied_gradient = w.layer.tensor("head_gradient", table * w.size.element, Owner::gradients, Lives::outside);
  const Slot gradient = attributes.accumulate ? ports.tied_gradient : w.parameter_gradient("embedding.weight", table);
  const std::int64_t bytes = w.layer.bytes(ports.d_output);
  const Traffic traffic{bytes, attributes.accumulate ? bytes : w.layer.bytes(gradient)};
  if (attributes.accumulate) w.kernel("native::embedding_backward", gradient, {ports.d_output, ports.input, gradient}, traffic, hw::MemoryClass::indexing);
  else w.kernel("native::embedding_backward", gradient, {ports.d_output, ports.input}, traffic, hw::MemoryClass::indexing);
  w.layer.computes(Function::embedding_backward, {ids(w, ports.input, 0), w.part(ports.d_output), w.part(gradient)}, attributes);
}

}  // namespace

Ports write_native_embedding(const StepSpec& spec, Layer& layer) {
  Writer w(spec, layer);
  const std::int64_t bytes = w.size.tokens * w.size.hidden * w.size.element;
  Ports ports;
  ports.params = w.params;
  ports.input = layer.tensor("ids", 16 * w.size.tokens, Owner::input, Lives::outside);
  ports.output = layer.tensor("output", bytes, Owner::activations, Lives::output);
  ports.d_output = layer.tensor("d_output", bytes, Owner::activations, Lives::input);
  const Attributes attributes{.rows = w.size.tokens, .columns = w.size.hidden, .seq_len = w.size.seq_len};
  embed(w, ports, attributes);
  layer.begin_backward();
  embedding_gradient(w, ports, attributes);
  if (spec.model.positions == Positions::learned) {
    const Slot gradient = w.parameter_gradient("positions.weight", spec.model.max_positions * spec.model.hidden);
    w.elementwise("native::positions_backward", gradient, {ports.d_output}, hw::MemoryClass::normalization);
    layer.computes(Function::positions_backward, {w.part(ports.d_output), w.part(gradient)}, attributes);
  }
  ports.parameter_gradients = w.parameter_gradients();
  ports.parameters = w.parameters();
  layer.finish();
  return ports;
}

}  // namespace stepcast::program
