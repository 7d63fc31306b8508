// The feed-forward part of a block: SwiGLU (gate, up, SiLU, product, down) or GELU (up, GELU, down). docs/kernels.md.
#pragma once

#include "program/blocks/writer.hpp"

namespace stepcast::program {

class FeedForward {
 public:
  explicit FeedForward(Writer& writer);
  Slot forward(Slot x);
  Slot backward(Slot gradient);

  /// In a compiled graph: the activation is one kernel, and so are its gradients.
  Slot forward_compiled(Slot x);
  std::vector<Slot> input_gradients_compiled(Slot gradient);
  void weight_gradients_compiled();

 private:
  [[nodiscard]] Slot wide(const char* name) { return w_.tokens_by(name, w_.size.ffn); }
  Writer& w_;
  bool gated_;
  Linear gate_, up_, down_;
  Slot x_ = kNoSlot, gate_out_ = kNoSlot, up_out_ = kNoSlot, silu_ = kNoSlot, product_ = kNoSlot;
  Slot d_gate_ = kNoSlot, d_up_ = kNoSlot;
};

}  // namespace stepcast::program
