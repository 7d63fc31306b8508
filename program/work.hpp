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
  virtual void block_backward(std::int64_t block) = 0;  // recomputation included
  virtual void embedding_backward() = 0;
  virtual void optimizer() = 0;  // clipping and update, on the shards
  /// Gradients of a block's (the root's) parameter tensors, alive after its backward; whoever concatenates them frees them.
  [[nodiscard]] virtual std::span<const BufferId> block_gradients(std::int64_t block) const = 0;
  [[nodiscard]] virtual std::span<const BufferId> root_gradients() const = 0;
};

}  // namespace stepcast::program
