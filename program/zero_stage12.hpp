// DeepSpeed's ZeRO stages 1 and 2 as the calls of their host thread: whole parameters on every rank in the compute type, gradients averaged bucket by bucket, the fp32 copy and
// the optimizer's state partitioned. Follows deepspeed/runtime/zero/stage_1_and_2.py under its names; docs/zero.md has the rules. Test: tests/unit/zero_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "program/intercept.hpp"
#include "program/training_step.hpp"
#include "program/zero_offload.hpp"
#include "program/zero_optimizer.hpp"
#include "program/zero_parameters.hpp"

namespace stepcast::program {

class ZeroStage12 final : public TrainingStep {
 public:
  /// Elements of each rank's partition of the flat parameters, aligned for NCCL. Frozen parameters are no part of them.
  static std::int64_t partition_of(const StepSpec& spec);
  /// The flat parameters, which `units` as made by make_zero_units read.
  static BufferId parameters_of(const StepSpec& spec, Builder& builder);

  ZeroStage12(const StepSpec& spec, Builder& builder, const std::vector<Unit>& units, Work& work);

  /// Persistent memory.
  void setup();

  /// What a step hands to the next one. Steps that begin alike are alike.
  struct Carried {
    bool optimizer_state = false;
    bool operator==(const Carried&) const = default;
  };
  [[nodiscard]] Carried carried() const { return {optimizer_state_}; }

 private:
  void zero_grad() override {}  // gradients are cleared as they are reduced
  void forward() override;
  void backward() override;
  void optimizer() override;

  template <class Emit>
  void with_hooks(Emit emit, std::size_t not_yet = GradientHooks::kNone);
  void gradient_ready(std::size_t parameter);
  void accumulate(std::size_t parameter);
  void add_to_bucket(std::size_t parameter);
  void reduce_bucket();
  void average(std::span<const BufferId> sources, std::int64_t elements);
  void keep_own_part(std::span<const BufferId> sources, std::int64_t elements);
  void epilogue();
  void gather_parameters();

  [[nodiscard]] KernelId kernel(const char* op, hw::MemoryClass memory, std::int64_t read, std::int64_t write);
  void launch(KernelId id, std::span<const BufferId> reads, std::span<const BufferId> updates);
  [[nodiscard]] bool stage2() const { return spec_.policy.framework == Framework::zero2; }
  /// Stage 2 reduces in every micro-batch, stage 1 in the last.
  [[nodiscard]] bool reduces() const { return stage2() || last_micro_batch(); }
  /// Stage 1 without overlap reduces after the backward.
  [[nodiscard]] bool reduces_in_hooks() const { return stage2() || spec_.policy.overlap_comm; }
  [[nodiscard]] bool accumulates() const { return !stage2() && spec_.batch.grad_accum > 1; }
  [[nodiscard]] BufferId source(std::size_t parameter) const { return accumulates() ? accumulated_[parameter] : parameters_[parameter].gradient; }
  [[nodiscard]] BufferId number(const char* what, std::int64_t bytes);

  const std::vector<Unit>& units_;
  std::int64_t p_, r_, m_;
  hw::GroupShape group_;  // divides the optimizer's state
  std::int64_t ranks_;    // of it
  Stream reduction_;      // DeepSpeed's reduction stream, or compute
  BufferId flat_parameters_, frozen_parameters_, gradient_partition_, new_partition_;
  std::vector<ZeroParameter> parameters_;  // that are trained, in registration order
  std::vector<BufferId> accumulated_, ipg_buffers_;
  GradientHooks hooks_;
  std::size_t shared_ = GradientHooks::kNone, head_weight_ = 0;  // of tied embeddings; of the head
  ZeroOptimizer optimizer_;
  HostGradients host_gradients_;

  struct Bucket {
    std::vector<BufferId> gradients;  // that are not copied into the contiguous buffer
    std::int64_t elements = 0;
    bool copied = false;  // some are
  };
  Bucket bucket_;
  std::size_t buckets_ = 0, ipg_index_ = 0;  // buckets of this micro-batch
  EventId drained_;
};

}  // namespace stepcast::program
