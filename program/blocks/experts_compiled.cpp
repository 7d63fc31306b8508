// Router and experts where torch.compile is given the block: the graph breaks at each torch.where, whose result has as many rows as the host must first be told. What is
// between two breaks is fused; gradients that several graphs give to one tensor are added by autograd, outside of them.
#include "program/blocks/experts.hpp"

namespace stepcast::program {

Slot Experts::forward_compiled(Slot x) {
  route_compiled(x);
  const Slot sum = w_.elementwise("triton_poi_fused_zeros experts", w_.tokens_by("experts", w_.size.hidden), {});
  for (Expert& expert : experts_) run_compiled(expert, x, sum);
  return sum;
}

void Experts::route_compiled(Slot x) {
  x_ = x;
  const Slot logits = w_.linear(router_, x);
  probabilities_ = w_.elementwise("triton_per_fused_softmax router", per_token("probabilities", count_, 4), {logits}, hw::MemoryClass::tiny);
  chosen_ = per_token("chosen", active_, 4);
  chosen_ids_ = per_token("chosen_ids", active_, 8);
  w_.kernel("aten::topk", {chosen_, chosen_ids_}, {probabilities_}, hw::MemoryClass::tiny, kTopKKernels - 1);
  weights_ = w_.elementwise("triton_poi_fused_sum_div router", per_token("weights", active_, w_.size.element), {chosen_}, hw::MemoryClass::tiny);
  mask_ = w_.elementwise("triton_poi_fused_one_hot", per_token("mask", active_ * count_, 8), {chosen_ids_});
}

/// Gather, network, and one kernel that weighs the rows and adds them to those of their tokens.
void Experts::run_compiled(Expert& expert, Slot x, Slot sum) {
  find_tokens(expert);
  const std::int64_t rows = expert.rows * w_.size.hidden * w_.size.element;
  const Slot input = w_.kernel("triton_poi_fused_index expert tokens", w_.activation(expert.prefix + "input", rows), {x, expert.tokens}, {rows, rows},
                               hw::MemoryClass::indexing);
  expert.result = expert.network.forward_compiled(input);
  w_.kernel("triton_poi_fused_mul_index_add", sum, {sum, expert.result, weights_, expert.tokens}, {2 * rows, rows}, hw::MemoryClass::indexing);
}

std::vector<Slot> Experts::input_gradients_compiled(Slot gradient) {
  Slot d_x = kNoSlot;
  for (auto expert = experts_.rbegin(); expert != experts_.rend(); ++expert)
    d_x = add_to(d_x, backward_of_compiled(*expert, gradient), expert->prefix + "d_sum");
  return {d_x, routing_backward_compiled()};
}

Slot Experts::backward_of_compiled(Expert& expert, Slot gradient) {
  const std::int64_t rows = expert.rows * w_.size.hidden * w_.size.element;
  weight_gradient_compiled(expert, gradient);
  const Slot d_result = w_.kernel("triton_poi_fused_index_mul backward", w_.activation(expert.prefix + "d_result", rows), {gradient, weights_, expert.tokens},
                                  {rows, rows}, hw::MemoryClass::indexing);
  const std::vector<Slot> d_input = expert.network.input_gradients_compiled(d_result);
  expert.network.weight_gradients_compiled();
  const Slot all = w_.elementwise("triton_poi_fused_zeros expert tokens", w_.tokens_by(expert.prefix + "d_tokens", w_.size.hidden), {});
  std::vector<Slot> reads{all, expert.tokens};
  reads.insert(reads.end(), d_input.begin(), d_input.end());
  w_.kernel("triton_poi_fused_add_index_put", {all}, reads, {(static_cast<std::int64_t>(d_input.size()) + 1) * rows, rows}, hw::MemoryClass::indexing, 0);
  return all;
}

/// Of the routing weights: products summed over each row, scattered to the tokens; with those of other experts autograd adds them up.
void Experts::weight_gradient_compiled(const Expert& expert, Slot gradient) {
  const std::int64_t rows = expert.rows * w_.size.hidden * w_.size.element, weights = expert.rows * w_.size.element;
  const auto named = [&](const char* name, std::int64_t bytes) { return w_.activation(expert.prefix + name, bytes); };
  const Slot d_chosen = w_.kernel("triton_red_fused_mul_sum routing weights", named("d_weights", weights), {gradient, expert.result, expert.tokens},
                                  {2 * rows, weights}, hw::MemoryClass::normalization);
  const Slot d_table = w_.elementwise("triton_poi_fused_zeros routing weights", named("d_weights_all", w_.layer.bytes(weights_)), {}, hw::MemoryClass::tiny);
  w_.kernel("triton_poi_fused_index_put routing weights", d_table, {d_table, d_chosen, expert.tokens}, {2 * weights, weights}, hw::MemoryClass::tiny);
  const auto added = [&] { return named("d_weights_sum", w_.layer.bytes(d_table)); };
  d_weights_ = d_weights_ == kNoSlot ? d_table : w_.elementwise("aten::add routing gradients", added(), {d_weights_, d_table}, hw::MemoryClass::tiny);
}

/// Division and top-k in one kernel after the zeros, softmax in another.
Slot Experts::routing_backward_compiled() {
  const Slot d_probabilities = w_.elementwise("triton_poi_fused_zeros router", per_token("d_probabilities", count_, 4), {}, hw::MemoryClass::tiny);
  w_.elementwise("triton_poi_fused_div_scatter router", d_probabilities, {d_probabilities, d_weights_, chosen_, chosen_ids_}, hw::MemoryClass::tiny);
  const Slot d_logits = w_.elementwise("triton_per_fused_softmax_backward router", per_token("d_logits", count_, w_.size.element),
                                       {d_probabilities, probabilities_}, hw::MemoryClass::tiny);
  return w_.linear_backward(router_, d_logits, x_);
}

}  // namespace stepcast::program
