// fully_shard (FSDP2) as the calls of its host thread: copy-in, all-gather and copy-out, implicit and explicit prefetching, resharding, the reduction, accumulation.
// Follows PyTorch torch/distributed/fsdp/_fully_shard/ (_fsdp_state.py, _fsdp_param_group.py, _fsdp_collectives.py) under its names; docs/fsdp2.md has the rules.
// Test: tests/unit/fsdp2_test.cpp, tests/unit/fsdp2_memory_test.cpp, tests/property/fsdp2_fixed_cost_test.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "program/builder.hpp"
#include "program/fsdp2_groups.hpp"
#include "program/groups.hpp"
#include "program/inner_units.hpp"
#include "program/optimizer_in_backward.hpp"
#include "program/training_step.hpp"

namespace stepcast::program {

class Fsdp2 final : public TrainingStep {
 public:
  /// `work` makes the launches of the model over `wrapped.units`. All must outlive this object.
  Fsdp2(const StepSpec& spec, Builder& builder, Fsdp2Groups& wrapped, Work& work);

  /// What a step hands to the next one. Steps that begin alike are alike.
  struct Carried {
    bool gradients = false, optimizer_state = false;
    bool operator==(const Carried&) const = default;
  };
  [[nodiscard]] Carried carried() const {
    return {std::any_of(wrapped_.groups.begin(), wrapped_.groups.end(), [](const Fsdp2Group& g) { return g.has_sharded_grad; }), optimizer_state_};
  }

 private:
  using Index = std::size_t;  // of a group and its unit

  void zero_grad() override;
  void forward() override;
  void backward() override;
  void optimizer() override;
  void find_fp8_scales();
  void blocks_forward(std::int64_t first, std::int64_t count);
  void blocks_backward(std::int64_t first, std::int64_t count);
  void inner_backward(std::int64_t block);
  void rebuilding_pre_forward(Index i, bool root);
  void rebuilding_post_forward(bool root);
  void watch_inner_units();

  // Hooks. `kNone`: a module without parameters of its own.
  void root_pre_forward();
  void pre_forward(Index i);
  void post_forward(Index i);
  void end_of_forward();
  void pre_backward(Index i);
  void post_backward(Index i);
  void final_callback();

  // The parts that they share.
  void unshard(Index i);
  void copy_in(Index i);
  void wait_for_unshard(Index i) { wait_for_unshard(i, !in_backward_); }
  void wait_for_unshard(Index i, bool in_forward);
  void copy_out(Index i);
  void reshard(Index i);
  void reshard_post_forward(Index i);
  void to_sharded(Index i);
  void free_storages(const Fsdp2Group& g);
  void release_staging(const Fsdp2Group& g);
  void prefetch_forward(Index i);
  void prefetch_backward(Index i);

  // Gradients: fsdp2_gradients.cpp.
  void collect_gradients(Index i);
  void accumulate_unsharded(Index i);
  void reduce(Index i);
  void reduce_scatter(Index i, BufferId output);
  void all_reduce(Index i, BufferId output);
  void finish_reduction(Index i, BufferId output, Stream stream);
  void name_steps();
  void step_now(Index i, Stream pool, Stream stream);
  void send_to_host(Index i, BufferId gradient, Stream pool, Stream stream);
  void wait_for_outstanding();

  // Parts of a group, for real runs: this rank's shard of all parameters, and those of all ranks.
  [[nodiscard]] Part shard_part(Index i, BufferId buffer, hw::Dtype dtype) { return part(buffer, dtype, unit(i).flat.shard); }
  [[nodiscard]] Part whole_part(Index i, BufferId buffer, hw::Dtype dtype) { return part(buffer, dtype, unit(i).flat.padded()); }
  /// Where the all-gather among `ranks` expects this rank's contribution.
  [[nodiscard]] Part staging_part(Index i, std::int64_t ranks);
  [[nodiscard]] std::int64_t gathering_ranks(Index i);
  [[nodiscard]] Part all_of(BufferId buffer, hw::Dtype dtype) const;
  [[nodiscard]] Call copied_out(Index i);
  [[nodiscard]] Call cloned(Index i, std::size_t tensor);
  [[nodiscard]] Call chunks(Index i, const std::vector<BufferId>& gradients);
  void extra(KernelId kernel, Stream stream, std::span<const Operand> operands);
  void extra(KernelId kernel, Stream stream, std::initializer_list<Operand> operands) { extra(kernel, stream, std::span(operands.begin(), operands.size())); }
  void open(Index i) { open_unit(std::min(i, wrapped_.units.size())); }
  void close(Index i) { close_unit(std::min(i, wrapped_.units.size())); }
  [[nodiscard]] Unit& unit(Index i) { return wrapped_.units[i]; }
  [[nodiscard]] Fsdp2Group& group(Index i) { return wrapped_.groups[i]; }
  /// Whether a gradient passes through the group: not behind a frozen embedding, in blocks that are frozen too.
  [[nodiscard]] bool has_backward(Index i);
  void end_mistargeted(Index i);
  [[nodiscard]] bool casts() const { return spec_.precision.param != spec_.precision.master; }
  [[nodiscard]] bool offloaded() const { return spec_.policy.cpu_offload != CpuOffload::none; }
  [[nodiscard]] bool replicated() const { return ranks_.replica.ranks() > 1; }

  static constexpr Index kNone = ~Index{0};

  Fsdp2Groups& wrapped_;
  Groups ranks_;
  DivideFactors divide_;  // kernels of their own for fp16 alone: NCCL averages the other types
  Index root_ = kNone, embedding_ = kNone, head_ = kNone;
  std::vector<Index> blocks_;  // and units inside of them, in forward order
  bool blocks_in_root_;        // none is a group of its own
  UnitUses inner_uses_;        // by index
  std::optional<OptimizerInBackward> optimizer_in_backward_;
  std::vector<std::size_t> first_step_;  // by index: of a group's tensors there

  std::vector<Index> post_forward_order_;
  Index held_ = kNone;                             // forward: its staging buffer is given back by the next group
  Index outstanding_ = kNone;                      // its reduce-scatter's input is given back by the next group's post-backward
  std::vector<BufferId> gradients_, accumulated_;  // of the group in work
};

}  // namespace stepcast::program
