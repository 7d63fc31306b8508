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
  /// Whatever uses `inner` uses `outer`, whose hooks stand around the inner's.
  void nest(std::size_t inner, std::size_t outer) {
    outer_.resize(std::max(outer_.size(), inner + 1), kNone);
    outer_[inner] = outer;
  }
  [[nodiscard]] std::size_t outer_of(std::size_t unit) const { return unit < outer_.size() ? outer_[unit] : kNone; }
  [[nodiscard]] bool empty() const { return by_buffer_.empty(); }

  /// Lets `emit` make its calls, with `begin(unit)` before the allocations of a unit's first kernel and `end(unit)` behind its last.
  template <class Emit, class Begin, class End>
  void run(Builder& builder, Emit emit, Begin begin, End end) {
    run(
        builder, emit, [](std::size_t) {}, [&](std::size_t unit, bool) { begin(unit); }, [&](std::size_t unit, bool) { end(unit); });
  }

  /// The same for the backward of a block that is rebuilt before it: a unit is used by the rebuilding, between its marks, and by the backward proper, and `begin` and `end` are told which
  /// (true: the rebuilding). `trigger(unit)`, before everything: the unit that the backward's first kernel belongs to, if there is one, and before it those around it.
  template <class Emit, class Trigger, class Begin, class End>
  void run(Builder& builder, Emit emit, Trigger trigger, Begin begin, End end) {
    intercept(
        builder, emit,
        [&](std::span<const Op> calls, std::size_t i) {
          if (i == 0) find(calls);
          if (i == 0) each_around(trigger_, trigger);
          for (const Range& use : uses_) {
            if (use.first == i) begin(use.unit, use.rebuilding);
          }
        },
        [&](std::span<const Op>, std::size_t i) {
          for (auto use = uses_.rbegin(); use != uses_.rend(); ++use) {  // inner ones before those around them
            if (use->last == i) end(use->unit, use->rebuilding);
          }
        });
  }

 private:
  struct Range {
    std::size_t unit;
    bool rebuilding;
    std::size_t first, last;
  };

  /// Those around a unit, from the outermost, and the unit.
  template <class F>
  void each_around(std::size_t unit, F f) const {
    if (unit == kNone) return;
    each_around(outer_of(unit), f);
    f(unit);
  }

  void find(std::span<const Op> calls) {
    uses_.clear();
    trigger_ = kNone;
    bool rebuilding = false, any = false;  // `any`: a kernel of the backward proper
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].kind == OpKind::mark && builder_.program().marks[calls[i].id].kind == MarkKind::recompute)
        rebuilding = builder_.program().marks[calls[i].id].begin;
      if (calls[i].kind != OpKind::launch) continue;
      for (const Operand& operand : builder_.program().operands_of(calls[i])) {
        if (operand.buffer >= by_buffer_.size() || by_buffer_[operand.buffer] == kNone) continue;
        each_around(by_buffer_[operand.buffer], [&](std::size_t unit) { add(unit, rebuilding, calls, i); });
        if (!rebuilding && !any) trigger_ = by_buffer_[operand.buffer];
      }
      any = any || !rebuilding;
    }
  }

  void add(std::size_t unit, bool rebuilding, std::span<const Op> calls, std::size_t i) {
    const auto known = std::find_if(uses_.begin(), uses_.end(), [&](const Range& use) { return use.unit == unit && use.rebuilding == rebuilding; });
    if (known != uses_.end()) {
      known->last = i;
      return;
    }
    std::size_t first = i;
    while (first > 0 && calls[first - 1].kind == OpKind::alloc) --first;
    uses_.push_back({unit, rebuilding, first, i});
  }

  const Builder& builder_;
  std::vector<std::size_t> by_buffer_, outer_;
  std::vector<Range> uses_;
  std::size_t trigger_ = kNone;
};

}  // namespace stepcast::program
