// Gradient clipping and AdamW on the shards: fused, multi-tensor ("foreach") or one tensor at a time, with their temporaries.
// Follows torch/optim/adamw.py, ATen/native/cuda/MultiTensorApply.cuh and FSDP's clip_grad_norm_. Test: tests/unit/adamw_test.cpp.
#pragma once

#include <span>
#include <vector>

#include "program/builder.hpp"
#include "program/spec.hpp"
#include "program/units.hpp"

namespace stepcast::program {

class AdamW {
 public:
  /// On `stream`, whose pool its state and temporaries are of. The units must outlive this object.
  AdamW(const StepSpec& spec, Builder& builder, std::span<const Unit> units, Stream stream = Stream::compute);
  /// Clipping, if asked for, and the update. The first step creates the optimizer state.
  void step();
  /// The update alone.
  void update();

 private:
  /// Part of the shards that one launch works on.
  struct Group {
    std::size_t begin = 0, end = 0;  // units
    std::int64_t elements = 0;
    std::uint32_t further_launches = 0;
  };
  /// One pass over tensors of each unit; `reads` and `writes` in elements of the master type per parameter.
  struct Pass {
    const char* op;
    std::vector<BufferId Unit::*> reads, updates;
    bool temporary_read = false, temporary_written = false;
  };

  void native_step();
  void native_clip();
  [[nodiscard]] std::vector<Operand> operands_of(std::initializer_list<BufferId Unit::*> members, Access access) const;
  [[nodiscard]] hw::Dtype norm_type() const { return spec_.precision.master == hw::Dtype::fp64 ? hw::Dtype::fp64 : hw::Dtype::fp32; }
  [[nodiscard]] Part norm_part() const;
  [[nodiscard]] std::vector<Part> gradient_parts() const;
  [[nodiscard]] Call update_call(const Group& group) const;
  void create_state();
  void step_on_host();
  void wait_for_host(const char* what);
  void all_reduce_scalars(BufferId numbers, const char* label);
  void unscale();
  void clip();
  void clip_tensors();
  void dispatch_tensors(std::size_t lists);
  void scalar(const char* op, std::initializer_list<Operand> operands);
  void fused();
  void multi_tensor();
  void for_loop();
  void pass(const Pass& pass, const std::vector<Group>& groups);
  [[nodiscard]] std::vector<Group> groups(std::size_t tensor_lists) const;
  [[nodiscard]] std::uint32_t tensors(const Unit& unit) const {
    return spec_.policy.framework == Framework::fsdp1 && !spec_.policy.use_orig_params ? 1 : unit.trained_tensors;
  }
  [[nodiscard]] KernelId kernel(const char* op, std::int64_t read_elements, std::int64_t write_elements) const;

  const StepSpec& spec_;
  Builder& builder_;
  Stream stream_;
  std::vector<const Unit*> units_;  // those with something to train
  std::int64_t element_;            // bytes of the master type
  bool state_created_ = false;
  std::vector<BufferId> temporary_, second_temporary_;  // by unit: one master shard each
  BufferId norms_ = 0, norm_ = 0, overflow_ = 0;
};

}  // namespace stepcast::program
