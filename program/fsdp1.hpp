// FullyShardedDataParallel (FSDP1) as the calls of its host thread: streams, unit life cycle, prefetching, rate limiter, gradient path, accumulation.
// Follows PyTorch torch/distributed/fsdp/_runtime_utils.py and _limiter_utils.py procedure by procedure, under the same names; docs/fsdp1.md has the rules.
// Test: tests/unit/fsdp1_test.cpp, tests/unit/limiter_test.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "program/builder.hpp"
#include "program/inner_units.hpp"
#include "program/training_step.hpp"
#include "program/units.hpp"

namespace stepcast::program {

class Fsdp1 final : public TrainingStep {
 public:
  /// `work` makes the launches of the model; `units` as made by make_units. All must outlive this object.
  Fsdp1(const StepSpec& spec, Builder& builder, std::vector<Unit>& units, Work& work);

  /// What a step hands to the next one. Steps that begin alike are alike.
  struct Carried {
    std::vector<EventId> free_events;
    bool order_known = false, gradients = false, optimizer_state = false;
    bool operator==(const Carried&) const = default;
  };
  [[nodiscard]] Carried carried() const;

 private:
  enum class Freed : std::uint8_t { in_forward, in_backward };

  void zero_grad() override;
  void forward() override;
  void backward() override;
  void blocks_forward(std::int64_t first, std::int64_t count);
  void blocks_backward(std::int64_t first, std::int64_t count);
  void watch_inner_units();
  void inner_backward(std::int64_t block);
  void unit_backward(Unit& unit);
  void outer_recompute(Unit& unit);

  // The two primitives.
  void unshard(Unit& unit);
  bool pre_unshard(Unit& unit);
  void rate_limiter();
  void all_gather(Unit& unit);
  void reshard(Unit& unit, bool do_free, Freed when);
  void collective(std::uint32_t entry, Stream stream, std::initializer_list<Operand> operands);

  // Hooks.
  void root_pre_forward();
  void pre_forward(Unit* unit);
  void post_forward(Unit* unit, bool grad_mode = true);
  void pre_backward(Unit* unit);
  void post_backward(Unit& unit);
  void final_callback();
  void prefetch_next(const Unit& unit);
  void prefetch_previous(const Unit& unit);

  // Gradients.
  void accumulate_flat_gradient(Unit& unit);
  void reduce_gradient(Unit& unit);
  BufferId reduce_scatter(Unit& unit);
  void all_reduce_gradient(Unit& unit);
  BufferId cast_to_reduce_type(Unit& unit);

  // Parts of a unit, for real runs: a shard in the master type or that of the reduction, the whole gradient in the compute type.
  [[nodiscard]] Part master_part(const Unit& unit, BufferId buffer) const { return part(buffer, spec_.precision.master, unit.flat.shard); }
  [[nodiscard]] Part reduced_part(const Unit& unit, BufferId buffer) const { return part(buffer, spec_.precision.reduce, unit.flat.shard); }
  [[nodiscard]] Part flat_part(const Unit& unit, BufferId buffer) const { return part(buffer, spec_.precision.param, unit.flat.elements); }
  [[nodiscard]] Call concatenation(const Unit& unit, std::span<const Operand> gradients, BufferId target) const;
  void extra(KernelId kernel, Stream stream, hw::HostWork work, std::initializer_list<Operand> operands);
  void open(const Unit* unit);
  void close(const Unit* unit);
  EventId free_event(const Unit& unit, Freed when);
  [[nodiscard]] bool frees_after_forward() const;
  [[nodiscard]] bool rebuilds(std::int64_t block) const;
  [[nodiscard]] bool recomputes_outside(const Unit& unit) const;
  /// Whether a gradient passes through the unit: not behind a frozen embedding, in blocks that are frozen too.
  [[nodiscard]] bool has_backward(const Unit& unit) const;
  void reshard_without_backward();
  [[nodiscard]] bool hybrid() const { return types_.sharded && types_.replicated; }
  [[nodiscard]] std::size_t position(const Unit& unit) const { return static_cast<std::size_t>(&unit - units_.data()); }

  std::vector<Unit>& units_;
  Unit *root_ = nullptr, *embedding_ = nullptr,
       *head_ = nullptr;  // the root has no unit if other units hold all parameters; the others only if they have their own
  bool blocks_in_root_;   // none is a unit of its own
  UnitUses inner_uses_;   // of units inside blocks, by position
  UnitTypes types_;
  DivideFactors divide_;

  std::deque<EventId> free_events_;             // of the rate limiter; lives across steps
  std::vector<std::size_t> pre_forward_order_;  // recorded in the first forward
  std::vector<std::size_t> post_forward_order_;
  bool order_recorded_ = false;
  std::vector<EventId> free_event_ids_;  // by (micro-batch, unit, Freed)
};

}  // namespace stepcast::program
