// DeepSpeed's ZeRO stage 3 as the calls of its host thread: every parameter is partitioned by itself and gathered module by module, gradients are reduce-scattered bucket by
// bucket. Follows deepspeed/runtime/zero/stage3.py and parameter_offload.py under their names; docs/zero.md has the rules. Test: tests/unit/zero3_test.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "program/intercept.hpp"
#include "program/training_step.hpp"
#include "program/zero_coordinator.hpp"
#include "program/zero_offload.hpp"
#include "program/zero_optimizer.hpp"
#include "program/zero_parameters.hpp"

namespace stepcast::program {

class ZeroStage3 final : public TrainingStep {
 public:
  /// Elements of each rank's parts of all parameters.
  static std::int64_t partition_of(const StepSpec& spec);
  /// And of those that are trained.
  static std::int64_t trained_partition_of(const StepSpec& spec);
  /// The parameters that are not partitioned, from which `units` as made by make_zero_units read all; kernels are given the gathered ones in their place.
  static BufferId persistent_of(const StepSpec& spec, Builder& builder);

  ZeroStage3(const StepSpec& spec, Builder& builder, const std::vector<Unit>& units, Work& work);

  /// Persistent memory.
  void setup();

  /// What a step hands to the next one. Steps that begin alike are alike.
  struct Carried {
    bool optimizer_state = false;
    ZeroCoordinator::Carried coordinator;
    std::deque<EventId> reductions;
    bool operator==(const Carried&) const = default;
  };
  [[nodiscard]] Carried carried() const { return {optimizer_state_, coordinator_.carried(), reductions_}; }

 private:
  using Module = ZeroCoordinator::Module;
  /// A block, the embedding with the positions, or the final norm with the head. `rest`: modules that no kernel names, fetched with the part as a whole.
  struct Part {
    std::vector<Module> modules;
    Module rest = ZeroCoordinator::kNone;
  };

  void zero_grad() override {}  // gradients are cleared as they are reduced
  void forward() override;
  void backward() override;
  void embedding_backward();
  void optimizer() override;

  void make_parts();
  void add_part(const std::vector<std::size_t>& numbers, bool tied_head);
  template <class Emit>
  void run(const Part& part, Emit emit, std::size_t not_yet = GradientHooks::kNone);
  void enter(const Part& part, std::span<const Op> calls, std::size_t i);
  [[nodiscard]] Module module_of(const Part& part, const Op& op) const;
  void show_gathered(const Part& part, const Op& op);
  void change_module(Module next);

  void gradient_ready(std::size_t parameter);
  void reduce_bucket();
  BufferId reduce_scatter(std::int64_t elements, std::int64_t own);
  void partition_gradients(BufferId reduced, std::int64_t own);
  void epilogue();
  void gather_persistent();

  [[nodiscard]] KernelId kernel(const char* op, hw::MemoryClass memory, std::int64_t read, std::int64_t write);
  void launch(KernelId id, std::span<const Operand> operands) { builder_.launch(id, reduction_, hw::HostWork::op_forward, operands); }
  void launch(KernelId id, std::initializer_list<Operand> operands) { launch(id, std::span(operands.begin(), operands.size())); }
  [[nodiscard]] BufferId number(const char* what, std::int64_t bytes);
  [[nodiscard]] const Part& front() const { return parts_[units_.size() - 1]; }
  [[nodiscard]] const Part& head() const { return parts_[units_.size()]; }

  const std::vector<Unit>& units_;
  std::int64_t p_, r_, ranks_;
  Stream reduction_;  // DeepSpeed's reduce-and-partition stream, or compute
  BufferId persistent_, partition_, gradient_partition_, ipg_buffer_;
  std::vector<ZeroParameter> parameters_;  // in registration order
  GradientHooks hooks_;
  std::size_t shared_ = GradientHooks::kNone, head_weight_ = 0;  // of tied embeddings; of the head
  ZeroOptimizer optimizer_;
  HostGradients host_gradients_;
  ZeroCoordinator coordinator_;
  std::vector<Part> parts_;  // blocks, embedding, head
  Module module_ = ZeroCoordinator::kNone;

  std::vector<std::size_t> bucket_;  // parameters
  std::vector<BufferId> apart_;      // their gradients that are not copied into the contiguous buffer
  std::int64_t elements_ = 0;
  std::size_t buckets_ = 0;         // of this micro-batch
  std::deque<EventId> reductions_;  // that the host has not seen end; lives across steps
  EventId drained_;
};

}  // namespace stepcast::program
