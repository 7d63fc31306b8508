// A feed-forward network: gated (gate, up, SiLU or GELU of the gate, product, down) or not (up, GELU, down). docs/kernels.md.
#pragma once

#include "program/blocks/writer.hpp"

namespace stepcast::program {

class FeedForward {
 public:
  /// Of a block, for all tokens.
  explicit FeedForward(Writer& writer) : FeedForward(writer, "", "", writer.size.tokens) {}
  /// Of an expert, for the `rows` tokens that are routed to it; `prefix` begins the names of its tensors, `label` those of its GEMMs.
  FeedForward(Writer& writer, const std::string& prefix, const std::string& label, std::int64_t rows);
  Slot forward(Slot x);
  Slot backward(Slot gradient);

  /// In a compiled graph: the activation is one kernel, and so are its gradients.
  Slot forward_compiled(Slot x);
  std::vector<Slot> input_gradients_compiled(Slot gradient);
  void weight_gradients_compiled();

 private:
  [[nodiscard]] Slot wide(const std::string& name, std::int64_t times = 1) { return w_.rows_by(prefix_ + name, rows_, times * w_.size.ffn); }
  [[nodiscard]] std::int64_t wide_bytes() const { return rows_ * w_.size.ffn * w_.size.element; }
  Slot project(Slot x);
  Slot backward_gated(Slot d_product);
  Slot join(Slot d_gate, Slot d_up);
  Slot sum(Slot a, Slot b);

  Writer& w_;
  std::string prefix_;
  std::int64_t rows_;
  bool gated_, fused_;
  std::string activation_;  // as kernels name it
  Linear gate_, up_, gate_up_, down_;
  Slot x_ = kNoSlot, gate_out_ = kNoSlot, up_out_ = kNoSlot, activated_ = kNoSlot, product_ = kNoSlot;
  Slot d_gate_ = kNoSlot, d_up_ = kNoSlot;  // one tensor with a fused projection
};

}  // namespace stepcast::program
