// What the FSDP hooks wrap: the computation of the embedding, the blocks, the head and the loss, as the launches that it makes.
// Two kinds: FixedWork (fixed-cost mode, one kernel per phase) and KernelWork (kernel by kernel, blocks/).
#pragma once

#include <cstdint>
#include <span>

#include "program/builder.hpp"

namespace stepcast::program {

class Work {
 public:
  virtual ~Work() = default;
  virtual void copy_inputs() = 0;  // host to device, on the compute stream
  virtual void embedding_forward() = 0;
  virtual void block_forward(std::int64_t block) = 0;
  virtual void head_forward() = 0;  // final norm, head, loss
  virtual void head_backward() = 0;
  /// Whether the block's activations are dropped and rebuilt as a whole in its backward.
  [[nodiscard]] virtual bool recomputes(std::int64_t block) const = 0;
  virtual void block_backward(std::int64_t block) = 0;  // recomputation included
  // The two parts of it one by one, for a block of which `recomputes` holds.
  virtual void block_recompute(std::int64_t block) = 0;
  virtual void block_backward_of_recomputed(std::int64_t block) = 0;
  virtual void embedding_backward() = 0;
  virtual void after_backward() = 0;  // what the training loop does with the model's output
  virtual void optimizer() = 0;       // clipping and update, on the shards
  /// Gradients of the parameter tensors of a block, of the head (with the final norm), of the embedding, or of both in this order, alive after its backward; whoever
  /// concatenates them frees them.
  [[nodiscard]] virtual std::span<const BufferId> block_gradients(std::int64_t block) const = 0;
  [[nodiscard]] virtual std::span<const BufferId> head_gradients() const = 0;
  [[nodiscard]] virtual std::span<const BufferId> embedding_gradients() const = 0;
  [[nodiscard]] virtual std::span<const BufferId> root_gradients() const = 0;
};

}  // namespace stepcast::program
