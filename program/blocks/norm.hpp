// RMSNorm and LayerNorm: the eager list of Hugging Face's LlamaRMSNorm (8 kernels forward, 16 backward), the fused kernels of nn.RMSNorm and nn.LayerNorm (1 and 2),
// and those of a compiled graph, joined with the residual additions. docs/kernels.md.
#pragma once

#include "program/blocks/writer.hpp"

namespace stepcast::program {

class Norm {
 public:
  Norm(Writer& writer, std::string name);
  /// Returns the normalised tensor.
  Slot forward(Slot x);
  /// Gradient of the input, written to `result` (a fresh tensor by default).
  Slot backward(Slot gradient, Slot result = kNoSlot);

  // --- in a compiled graph
  /// normalised = norm(a + b), and the sum into `sum`; `b` may be kNoSlot: norm(a) alone.
  Slot forward_compiled(Slot a, Slot b, Slot sum);
  /// The input gradient from several gradients of the output and that of the residual path (kNoSlot: none).
  Slot backward_compiled(const std::vector<Slot>& gradients, Slot residual, Slot result);

 private:
  Slot forward_eager_rms(Slot x);
  Slot backward_eager_rms(Slot gradient, Slot result);
  void make_statistics();
  [[nodiscard]] std::vector<Slot> gradient_slots();
  [[nodiscard]] Slot full(const char* what) { return w_.tokens_by(name_ + "." + what, w_.size.hidden); }
  [[nodiscard]] Slot full_fp32(const char* what) { return w_.activation(name_ + "." + what, w_.size.tokens * w_.size.hidden * 4); }
  [[nodiscard]] Slot per_token(const char* what) { return w_.activation(name_ + "." + what, w_.size.tokens * 4); }

  Writer& w_;
  std::string name_;
  bool layer_norm_, has_bias_, eager_list_;
  Slot x_ = kNoSlot, x32_ = kNoSlot, statistics_ = kNoSlot, normed_ = kNoSlot;
};

}  // namespace stepcast::program
