// The computation kernel by kernel, as PyTorch would launch it eagerly or compiled: one layer description for all blocks (more where some attend to a window and some to all
// positions, or where some are frozen), one for the head, one for the embedding.
// Test: tests/unit/memory_of_step_test.cpp, tests/unit/blocks_test.cpp.
#pragma once

#include <optional>
#include <vector>

#include "program/adamw.hpp"
#include "program/blocks/lists.hpp"
#include "program/units.hpp"
#include "program/work.hpp"

namespace stepcast::program {

class KernelWork final : public Work {
 public:
  /// `units` as made by make_units; must outlive this object.
  KernelWork(const StepSpec& spec, Builder& builder, const std::vector<Unit>& units);
  void copy_inputs() override;
  void embedding_forward() override { embedding_.forward(embedding_buffers_); }
  void block_forward(std::int64_t block) override { kind(block).forward(buffers(block), recomputes(block)); }
  void head_forward() override { head_.forward(head_buffers_); }
  void head_backward() override;
  [[nodiscard]] bool recomputes(std::int64_t block) const override {
    return block >= blocks_without_backward(spec_.model) && program::recomputes(spec_.recompute, block);
  }
  void block_backward(std::int64_t block) override;
  void block_recompute(std::int64_t block) override { kind(block).recompute(buffers(block)); }
  void block_backward_of_recomputed(std::int64_t block) override;
  void embedding_backward() override;
  void after_backward() override;
  void optimizer() override { adamw_->step(); }
  [[nodiscard]] std::span<const BufferId> block_gradients(std::int64_t block) const override { return block_gradients_[static_cast<std::size_t>(block)]; }
  [[nodiscard]] std::span<const BufferId> head_gradients() const override { return root_gradients().first(head_gradient_count_); }
  [[nodiscard]] std::span<const BufferId> embedding_gradients() const override { return root_gradients().subspan(head_gradient_count_); }
  [[nodiscard]] std::span<const BufferId> root_gradients() const override { return root_gradients_; }

 private:
  struct BlockKind {
    std::int64_t window;
    Training training;
    Layer layer;
    Ports ports;
  };
  void write_blocks();
  void make_blocks(const std::vector<Unit>& units);
  [[nodiscard]] std::vector<BlockKind>::iterator find_kind(std::int64_t block);
  [[nodiscard]] Layer& kind(std::int64_t block) { return find_kind(block)->layer; }
  void end_of_gradients(std::int64_t block);
  void make_ends(const std::vector<Unit>& units, const Ports& head, const Ports& embedding);
  [[nodiscard]] const Layer::Instance& buffers(std::int64_t block) const { return block_buffers_[static_cast<std::size_t>(block)]; }
  [[nodiscard]] BufferId boundary(std::int64_t block, bool gradient) const;

  const StepSpec& spec_;
  Builder& builder_;
  std::vector<BlockKind> kinds_;
  Layer head_, embedding_, metrics_;
  std::vector<Layer::Instance> block_buffers_;
  std::vector<std::vector<BufferId>> block_gradients_;
  Layer::Instance head_buffers_, embedding_buffers_, metrics_buffers_;
  std::vector<BufferId> root_gradients_;
  std::size_t head_gradient_count_ = 0;
  BufferId input_;
  KernelId copy_input_;
  EventId input_copied_;
  std::optional<BufferId> kept_logits_;
  std::optional<AdamW> adamw_;  // ZeRO has an optimizer of its own, and in the backward every parameter has
};

}  // namespace stepcast::program
