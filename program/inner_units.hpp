// Hooks of FSDP units inside a block, between the calls that the block makes. Test: tests/unit/wrapping_test.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "program/intercept.hpp"

namespace stepcast::program {

/// Where units begin and end among the calls of a block: around the kernels that read a unit's parameters or write their gradients.
class UnitUses {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  explicit UnitUses(const Builder& builder) : builder_(builder) {}
  /// `unit` numbers whoever uses `buffer`.
  void watch(std::size_t unit, BufferId buffer) {
    by_buffer_.resize(std::max(by_buffer_.size(), std::size_t{buffer} + 1), kNone);
    by_buffer_[buffer] = unit;
  }
  [[nodiscard]] bool empty() const { return by_buffer_.empty(); }

  /// Lets `emit` make its calls, with `begin(unit)` before the allocations of a unit's first kernel and `end(unit)` behind its last.
  template <class Emit, class Begin, class End>
  void run(Builder& builder, Emit emit, Begin begin, End end) {
    intercept(
        builder, emit,
        [&](std::span<const Op> calls, std::size_t i) {
          if (i == 0) find(calls);
          for (const Range& use : uses_) {
            if (use.first == i) begin(use.unit);
          }
        },
        [&](std::span<const Op>, std::size_t i) {
          for (const Range& use : uses_) {
            if (use.last == i) end(use.unit);
          }
        });
  }

 private:
  struct Range {
    std::size_t unit, first, last;
  };

  void find(std::span<const Op> calls) {
    uses_.clear();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].kind != OpKind::launch) continue;
      for (const Operand& operand : builder_.program().operands_of(calls[i])) {
        if (operand.buffer < by_buffer_.size() && by_buffer_[operand.buffer] != kNone) add(by_buffer_[operand.buffer], calls, i);
      }
    }
  }

  void add(std::size_t unit, std::span<const Op> calls, std::size_t i) {
    const auto known = std::find_if(uses_.begin(), uses_.end(), [&](const Range& use) { return use.unit == unit; });
    if (known != uses_.end()) {
      known->last = i;
      return;
    }
    std::size_t first = i;
    while (first > 0 && calls[first - 1].kind == OpKind::alloc) --first;
    uses_.push_back({unit, first, i});
  }

  const Builder& builder_;
  std::vector<std::size_t> by_buffer_;
  std::vector<Range> uses_;
};

}  // namespace stepcast::program
