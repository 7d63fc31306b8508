// From the normalised input to the attention's output: projections, clamp, rotary positions, expansion of grouped keys and values, and the attention itself, fused
// (flash, triton, efficient) or as the batched GEMMs and softmax kernels of eager code. docs/kernels.md.
#pragma once

#include "program/blocks/dropout.hpp"
#include "program/blocks/writer.hpp"

namespace stepcast::program {

/// The fused kernel of a choice; none for unfused attention.
hw::AttentionKernel fused_kernel(Attention attention);

/// Queries, keys and values, or their gradients. A fused projection gives one tensor for all three.
struct Qkv {
  Slot q = kNoSlot, k = kNoSlot, v = kNoSlot;
};

/// Rotary positions of one tensor: as Hugging Face's apply_rotary_pos_emb runs them, 5 kernels forward and 9 backward; as Meta's apply_rotary_emb, 3 and 3; fused, or in a
/// compiled graph, one each.
class Rope {
 public:
  Rope(Writer& writer, std::string name, std::int64_t width) : w_(writer), name_(std::move(name)), bytes_(w_.size.tokens * width * w_.size.element) {}
  Slot forward(Slot x);
  Slot backward(Slot gradient);
  /// `expanded`: width of the result, larger where grouped keys are repeated in the same kernel.
  Slot forward_compiled(Slot x, std::int64_t expanded);
  Slot backward_compiled(Slot gradient);

 private:
  Slot rotate_half(Slot x);
  Slot rotate_half_backward(Slot gradient);
  Slot as_complex(Slot x, const char* pass);
  [[nodiscard]] Slot tensor(const char* what, std::int64_t bytes) { return w_.activation(name_ + "." + what, bytes); }
  Writer& w_;
  std::string name_;
  std::int64_t bytes_;
};

/// Projections and what follows them until the attention proper.
class QkvProjection {
 public:
  explicit QkvProjection(Writer& writer);
  Qkv forward(Slot x);
  /// Gradient of x: all input gradients, and the additions that join them, follow the weights'.
  Slot backward(const Qkv& gradient);

  /// In a compiled graph the sum of the input gradients is left to the kernel that consumes it.
  Qkv forward_compiled(Slot x);
  std::vector<Slot> input_gradients_compiled(const Qkv& gradient);
  void weight_gradients_compiled();

 private:
  Qkv project(Slot x);
  [[nodiscard]] std::int64_t kv_width() const { return expands_ ? w_.size.query_width : w_.size.kv_width; }  // as the attention sees them
  Slot expand(const char* name, Slot x);
  Slot reduce(const char* name, Slot gradient);
  Slot join(const Qkv& gradient);
  Slot clamp(Slot x);
  Slot clamp_gradient(const char* name, Slot gradient, Slot clamped);
  Qkv clamp_gradients(const Qkv& gradient);

  Writer& w_;
  bool fused_, rope_, clip_, expands_;
  Linear q_, k_, v_, qkv_;
  Rope rope_q_, rope_k_;
  Slot x_ = kNoSlot;
  Qkv projected_;
  std::vector<std::pair<const Linear*, Slot>> pending_;  // compiled: linear layers and the gradients of their outputs
};

/// softmax(q k^T / sqrt(d)) v, causal; `window`: positions that a query sees, 0: all before it.
class AttentionCore {
 public:
  AttentionCore(Writer& writer, std::int64_t window);
  Slot forward(const Qkv& qkv);
  Qkv backward(Slot gradient);

 private:
  Slot forward_fused();
  Qkv backward_fused(Slot gradient);
  Slot forward_unfused();
  Qkv backward_unfused(Slot gradient);
  Slot probabilities(Slot scores);
  Slot score_gradient(Slot d_probabilities);
  Slot soft_cap(Slot scores);
  Slot soft_cap_gradient(Slot gradient);
  Slot causal_mask();
  [[nodiscard]] hw::KernelShape fused_shape(hw::KernelKind kind) const;
  [[nodiscard]] Slot scores(const char* what, std::int64_t element);
  [[nodiscard]] Qkv gradients();

  Writer& w_;
  bool compiled_, megatron_, llama_, capped_;
  std::int64_t window_;
  std::int64_t kv_heads_;  // as the attention sees them: expanded ones are as many as the query heads
  Qkv in_;
  Dropout dropout_;
  Slot out_ = kNoSlot, lse_ = kNoSlot, raw_ = kNoSlot, tanh_ = kNoSlot, softmax_ = kNoSlot, probabilities_ = kNoSlot;
};

}  // namespace stepcast::program
