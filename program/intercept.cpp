// Last writes of gradients. See intercept.hpp.
#include "program/intercept.hpp"

#include <algorithm>

namespace stepcast::program {

void GradientHooks::watch(std::size_t parameter, BufferId gradient) {
  by_buffer_.resize(std::max(by_buffer_.size(), std::size_t{gradient} + 1), kNone);
  by_buffer_[gradient] = parameter;
  parameters_ = std::max(parameters_, parameter + 1);
}

std::span<const std::size_t> GradientHooks::ready(std::span<const Op> calls, std::size_t i, std::size_t not_yet) {
  if (i == 0) find(calls, not_yet);
  return after_[i];
}

void GradientHooks::find(std::span<const Op> calls, std::size_t not_yet) {
  std::vector<std::size_t> last_write(parameters_, kNone);  // parameter -> call
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].kind != OpKind::launch) continue;
    for (const Operand& operand : builder_.program().operands_of(calls[i])) {
      if (operand.access == Access::read || operand.buffer >= by_buffer_.size()) continue;
      const std::size_t parameter = by_buffer_[operand.buffer];
      if (parameter != kNone && parameter != not_yet) last_write[parameter] = i;
    }
  }
  after_.assign(calls.size(), {});
  for (std::size_t parameter = 0; parameter < parameters_; ++parameter) {
    if (last_write[parameter] != kNone) after_[last_write[parameter]].push_back(parameter);
  }
}

}  // namespace stepcast::program
