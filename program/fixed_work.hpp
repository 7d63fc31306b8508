// Fixed-cost mode: each named phase of a step is exactly one kernel on the compute stream and nothing else runs. docs/design.md section 6; test: tests/unit/fsdp1_test.cpp.
#pragma once

#include "program/work.hpp"

namespace stepcast::program {

class FixedWork final : public Work {
 public:
  FixedWork(const Recompute& recompute, Builder& builder) : recompute_(recompute), builder_(builder) {}
  void copy_inputs() override {}
  void embedding_forward() override { launch(hw::FixedPhase::embedding_forward, "embedding_forward"); }
  void block_forward(std::int64_t) override { launch(hw::FixedPhase::block_forward, "block_forward"); }
  void head_forward() override { launch(hw::FixedPhase::head_forward, "head_forward"); }
  void head_backward() override { launch(hw::FixedPhase::head_backward, "head_backward"); }
  [[nodiscard]] bool recomputes(std::int64_t block) const override { return program::recomputes(recompute_, block); }
  void block_backward(std::int64_t) override { launch(hw::FixedPhase::block_backward, "block_backward"); }
  void block_recompute(std::int64_t) override {}  // its time is part of block_backward
  void block_backward_of_recomputed(std::int64_t block) override { block_backward(block); }
  void embedding_backward() override { launch(hw::FixedPhase::embedding_backward, "embedding_backward"); }
  void after_backward() override {}
  void optimizer() override { launch(hw::FixedPhase::optimizer, "optimizer"); }
  [[nodiscard]] std::span<const BufferId> block_gradients(std::int64_t) const override { return {}; }
  [[nodiscard]] std::span<const BufferId> head_gradients() const override { return {}; }
  [[nodiscard]] std::span<const BufferId> embedding_gradients() const override { return {}; }
  [[nodiscard]] std::span<const BufferId> root_gradients() const override { return {}; }

 private:
  void launch(hw::FixedPhase phase, std::string_view label) {
    const hw::KernelShape shape{.kind = hw::KernelKind::fixed, .phase = phase};
    builder_.launch(builder_.kernel(shape, label, "fixed"), Stream::compute, hw::HostWork::op_forward, {});
  }
  const Recompute& recompute_;
  Builder& builder_;
};

}  // namespace stepcast::program
