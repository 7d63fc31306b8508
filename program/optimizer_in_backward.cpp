// One AdamW for each tensor. See optimizer_in_backward.hpp.
#include "program/optimizer_in_backward.hpp"

#include <span>

namespace stepcast::program {

std::size_t OptimizerInBackward::add(const std::string& name, const Unit& unit, std::int64_t begin, const Part& gradient) {
  Unit& tensor = tensors_.emplace_back();
  tensor.name = name;
  tensor.tensors = tensor.trained_tensors = 1;
  tensor.parameters = tensor.trained_parameters = tensor.trained_shard = gradient.count;
  tensor.master = unit.master;
  tensor.sharded_grad = gradient.buffer;
  tensor.gradients.push_back({gradient, begin, 0});
  const std::int64_t bytes = hw::bytes_per_element(spec_.precision.master) * gradient.count;
  tensor.exp_avg = builder_.buffer(name + ".exp_avg", bytes, Owner::optimizer);
  tensor.exp_avg_sq = builder_.buffer(name + ".exp_avg_sq", bytes, Owner::optimizer);
  optimizers_.emplace_back(spec_, builder_, std::span(&tensor, 1), stream_);
  return optimizers_.size() - 1;
}

}  // namespace stepcast::program
