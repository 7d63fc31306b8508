// Hooks of a framework between the calls that a part of the model makes. Test: tests/unit/intercept_test.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "program/builder.hpp"

namespace stepcast::program {

/// Lets `emit` make its calls, then makes each of them again between `before(calls, i)` and `after(calls, i)`, which may make calls of their own.
template <class Emit, class Before, class After>
void intercept(Builder& builder, Emit emit, Before before, After after) {
  std::vector<Op>& ops = builder.program().ops;
  const auto begin = static_cast<std::ptrdiff_t>(ops.size());
  emit();
  const std::vector<Op> made(ops.begin() + begin, ops.end());
  ops.erase(ops.begin() + begin, ops.end());
  for (std::size_t i = 0; i < made.size(); ++i) {
    before(std::span<const Op>(made), i);
    ops.push_back(made[i]);
    after(std::span<const Op>(made), i);
  }
}

/// Finds the kernels after which the gradients of parameters are ready: the last that writes each of them.
class GradientHooks {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  explicit GradientHooks(const Builder& builder) : builder_(builder) {}
  /// `parameter` numbers whose gradient the model's kernels write to `gradient`.
  void watch(std::size_t parameter, BufferId gradient);
  /// Parameters, by number, whose gradient the i-th of these calls finishes.
  [[nodiscard]] std::span<const std::size_t> ready(std::span<const Op> calls, std::size_t i, std::size_t not_yet = kNone);

 private:
  void find(std::span<const Op> calls, std::size_t not_yet);

  const Builder& builder_;
  std::vector<std::size_t> by_buffer_;  // gradient -> parameter, kNone elsewhere
  std::size_t parameters_ = 0;
  std::vector<std::vector<std::size_t>> after_;  // by call
};

}  // namespace stepcast::program
