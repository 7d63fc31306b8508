// The lists of router and experts, operator by operator.
#include "program/blocks/experts.hpp"

#include "program/model.hpp"

namespace stepcast::program {
namespace {

constexpr std::int64_t kId = 8;                  // bytes of an index
constexpr std::uint32_t kSelectKernels = 2;      // compaction, expansion to coordinates (ATen/native/cuda/Nonzero.cu)
constexpr std::uint32_t kAccumulateKernels = 5;  // index arithmetic, radix sort in three, the sums (ATen/native/cuda/Indexing.cu)

}  // namespace

Experts::Experts(Writer& writer)
    : w_(writer),
      count_(writer.spec.model.experts),
      active_(writer.spec.model.active_experts),
      router_{.name = "router", .in = writer.size.hidden, .out = count_, .fp8 = false} {
  for (std::int64_t i = 0; i < count_; ++i) {
    const std::int64_t rows = expert_rows(w_.size.tokens * active_, count_, i);
    experts_.push_back({expert_prefix(i), rows, FeedForward(w_, expert_prefix(i), "expert ", rows)});
  }
}

Slot Experts::forward(Slot x) {
  route(x);
  const Slot sum = w_.elementwise("aten::zeros expert outputs", w_.tokens_by("experts", w_.size.hidden), {});
  for (Expert& expert : experts_) run(expert, x, sum);
  return sum;
}

/// Probabilities in fp32, the best ones of each token with sum 1, and the mask of (expert, choice, token).
void Experts::route(Slot x) {
  x_ = x;
  const std::int64_t e = w_.size.element;
  Slot logits = w_.linear(router_, x);
  if (e != 4) logits = w_.elementwise("aten::to fp32 router", per_token("logits", count_, 4), {logits});
  probabilities_ = w_.elementwise("aten::softmax router", per_token("probabilities", count_, 4), {logits}, hw::MemoryClass::tiny);
  chosen_ = per_token("chosen", active_, 4);
  chosen_ids_ = per_token("chosen_ids", active_, kId);
  w_.kernel("aten::topk", {chosen_, chosen_ids_}, {probabilities_}, hw::MemoryClass::tiny, kTopKKernels - 1);
  total_ = w_.elementwise("aten::sum router", per_token("total", 1, 4), {chosen_}, hw::MemoryClass::tiny);
  weights_ = w_.elementwise("aten::div router", per_token("weights_fp32", active_, 4), {chosen_, total_}, hw::MemoryClass::tiny);
  if (e != 4) weights_ = w_.elementwise("aten::to router", per_token("weights", active_, e), {weights_}, hw::MemoryClass::tiny);
  mask_ = w_.elementwise("aten::zeros one_hot", per_token("mask", active_ * count_, kId), {});
  w_.kernel("aten::scatter_ one_hot", mask_, {mask_, chosen_ids_}, {w_.layer.bytes(chosen_ids_), w_.layer.bytes(chosen_ids_)}, hw::MemoryClass::indexing);
}

/// torch.where: counts, waits for the count, then writes the coordinates.
void Experts::find_tokens(Expert& expert) {
  const std::int64_t mask = w_.layer.bytes(mask_) / count_;
  const Slot found = w_.kernel("aten::nonzero count", w_.activation(expert.prefix + "found", kId), {mask_}, {mask, kId}, hw::MemoryClass::indexing);
  w_.layer.synchronise();
  expert.tokens = w_.activation(expert.prefix + "tokens", 2 * kId * expert.rows);
  w_.kernel("aten::nonzero select", {expert.tokens}, {mask_, found}, {mask, w_.layer.bytes(expert.tokens)}, hw::MemoryClass::indexing, kSelectKernels - 1);
}

void Experts::run(Expert& expert, Slot x, Slot sum) {
  find_tokens(expert);
  const std::int64_t rows = expert.rows * w_.size.hidden * w_.size.element, weights = expert.rows * w_.size.element;
  const Slot input =
      w_.kernel("aten::index expert tokens", w_.activation(expert.prefix + "input", rows), {x, expert.tokens}, {rows, rows}, hw::MemoryClass::indexing);
  expert.result = expert.network.forward(input);
  expert.weights = w_.kernel("aten::index routing weights", w_.activation(expert.prefix + "weights", weights), {weights_, expert.tokens}, {weights, weights},
                             hw::MemoryClass::tiny);
  const Slot scaled = w_.elementwise("aten::mul routing weights", w_.activation(expert.prefix + "scaled", rows), {expert.result, expert.weights});
  w_.kernel("aten::index_add_", sum, {sum, scaled, expert.tokens}, {2 * rows, rows}, hw::MemoryClass::indexing);
}

Slot Experts::backward(Slot gradient) {
  Slot d_x = kNoSlot;
  for (auto expert = experts_.rbegin(); expert != experts_.rend(); ++expert) d_x = add_to(d_x, backward_of(*expert, gradient), expert->prefix + "d_sum");
  return add_to(d_x, routing_backward(), "router.d_sum");
}

Slot Experts::add_to(Slot sum, Slot gradient, const std::string& name) {
  return sum == kNoSlot ? gradient : w_.add("aten::add input gradients", w_.activation(name, w_.layer.bytes(gradient)), sum, gradient);
}

Slot Experts::backward_of(Expert& expert, Slot gradient) {
  const std::int64_t rows = expert.rows * w_.size.hidden * w_.size.element, weights = w_.layer.bytes(expert.weights);
  const auto rows_of = [&](const char* name) { return w_.activation(expert.prefix + name, rows); };
  const Slot d_scaled = w_.kernel("IndexAddBackward0 index_select", rows_of("d_scaled"), {gradient, expert.tokens}, {rows, rows}, hw::MemoryClass::indexing);
  const Slot d_result = w_.elementwise("MulBackward0 expert", rows_of("d_result"), {d_scaled, expert.weights});
  const Slot d_full = w_.kernel("MulBackward0 routing weights", rows_of("d_weights_full"), {d_scaled, expert.result, expert.weights}, {2 * rows, rows});
  const Slot d_chosen =
      w_.elementwise("aten::sum routing weights", w_.activation(expert.prefix + "d_weights", weights), {d_full}, hw::MemoryClass::normalization);
  const Slot d_table =
      w_.elementwise("IndexBackward0 zeros", w_.activation(expert.prefix + "d_weights_all", w_.layer.bytes(weights_)), {}, hw::MemoryClass::tiny);
  w_.kernel("IndexBackward0 index_put_", {d_table}, {d_table, d_chosen, expert.tokens}, {2 * weights, weights}, hw::MemoryClass::tiny, kAccumulateKernels - 1);
  d_weights_ = d_weights_ == kNoSlot ? d_table
                                     : w_.elementwise("aten::add routing gradients", w_.activation(expert.prefix + "d_weights_sum", w_.layer.bytes(d_table)),
                                                      {d_weights_, d_table}, hw::MemoryClass::tiny);
  const Slot d_input = expert.network.backward(d_result);
  const Slot all = w_.elementwise("IndexBackward0 zeros", w_.tokens_by(expert.prefix + "d_tokens", w_.size.hidden), {});
  w_.kernel("IndexBackward0 index_put_", {all}, {all, d_input, expert.tokens}, {2 * rows, rows}, hw::MemoryClass::indexing, kAccumulateKernels - 1);
  return all;
}

/// From the weights' gradient to that of the router's input.
Slot Experts::routing_backward() {
  const std::int64_t e = w_.size.element;
  const auto tiny = [&](const char* op, const char* name, std::int64_t elements, std::initializer_list<Slot> reads) {
    return w_.elementwise(op, per_token(name, elements, 4), reads, hw::MemoryClass::tiny);
  };
  Slot d = d_weights_;
  if (e != 4) d = tiny("ToCopyBackward0 router", "d_weights_fp32", active_, {d});
  // w = p / total: d / total, and -sum(d w / total) for the total
  const Slot d_direct = tiny("DivBackward0 chosen", "d_direct", active_, {d, total_});
  const Slot negated = tiny("DivBackward0 neg", "negated", active_, {d});
  const Slot ratio = tiny("DivBackward0 ratio", "ratio", active_, {chosen_, total_});
  const Slot squared = tiny("DivBackward0 ratio again", "squared", active_, {ratio, total_});
  const Slot product = tiny("DivBackward0 mul", "d_total_full", active_, {negated, squared});
  const Slot d_total = tiny("aten::sum total", "d_total", 1, {product});
  const Slot d_chosen = tiny("aten::add chosen gradients", "d_chosen", active_, {d_direct, d_total});
  const Slot d_probabilities = w_.elementwise("TopkBackward0 zeros", per_token("d_probabilities", count_, 4), {}, hw::MemoryClass::tiny);
  w_.elementwise("TopkBackward0 scatter", d_probabilities, {d_probabilities, d_chosen, chosen_ids_}, hw::MemoryClass::tiny);
  Slot d_logits = tiny("SoftmaxBackward0 router", "d_logits_fp32", count_, {d_probabilities, probabilities_});
  if (e != 4) d_logits = w_.elementwise("ToCopyBackward0 router logits", per_token("d_logits", count_, e), {d_logits}, hw::MemoryClass::tiny);
  return w_.linear_backward(router_, d_logits, x_);
}

}  // namespace stepcast::program
