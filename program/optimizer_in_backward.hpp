// The optimizer inside the backward: every parameter tensor has an AdamW of its own, whose step its hook makes as soon as the gradient is accumulated
// (Tensor.register_post_accumulate_grad_hook; PyTorch's tutorial "optimizer step in backward", torchtune's optimizer_in_bwd).
// docs/execution.md has what it means for memory. Test: tests/unit/optimizer_in_backward_test.cpp.
#pragma once

#include <deque>
#include <string>

#include "program/adamw.hpp"

namespace stepcast::program {

class OptimizerInBackward {
 public:
  /// Steps run on `stream`, and their memory is of its pool: the stream that is current where the hooks are called.
  OptimizerInBackward(const StepSpec& spec, Builder& builder, Stream stream) : spec_(spec), builder_(builder), stream_(stream) {}

  /// A parameter tensor, or this rank's shard of one, of `unit`: `gradient` is its gradient in the master type, `begin` its first element in the unit's master.
  /// Returns its number.
  std::size_t add(const std::string& name, const Unit& unit, std::int64_t begin, const Part& gradient);
  /// The update alone; whoever took the gradient's memory gives it back.
  void step(std::size_t number) { optimizers_[number].update(); }

 private:
  const StepSpec& spec_;
  Builder& builder_;
  Stream stream_;
  std::deque<Unit> tensors_;  // each as a unit of its own; they stay where they are
  std::deque<AdamW> optimizers_;
};

}  // namespace stepcast::program
