// The optimizer's step of DeepSpeed's ZeRO on one rank's partition, on the device or, offloaded, on the host. Follows `step` of deepspeed/runtime/zero/stage_1_and_2.py and
// stage3.py; docs/zero.md, "Optimizer". Test: tests/unit/zero_test.cpp.
#pragma once

#include <vector>

#include "program/adamw.hpp"
#include "program/builder.hpp"
#include "program/spec.hpp"
#include "program/units.hpp"

namespace stepcast::program {

class ZeroOptimizer {
 public:
  /// `partition` of a rank with the gradients of `tensors` parameters, in `gradients`; `bit16`: where the updated parameters go in the compute type.
  ZeroOptimizer(const StepSpec& spec, Builder& builder, const Unit& partition, std::int64_t tensors, BufferId gradients, BufferId bit16);

  /// Persistent memory of the device.
  void setup();
  /// Norm, update and the copy to `bit16`. `gives_back`: the gradients are freed once they are copied.
  void step(bool gives_back);
  [[nodiscard]] bool offloaded() const { return spec_.policy.cpu_offload != CpuOffload::none; }

 private:
  void update_on_device(bool gives_back);
  void update_on_host();
  void norm_of_gradients();
  void combine_norms();
  void fp32_gradient(bool gives_back);
  void write_back_from_host();
  void synchronize();
  [[nodiscard]] KernelId kernel(const char* op, hw::MemoryClass memory, std::int64_t read, std::int64_t write);
  void launch(KernelId id, std::initializer_list<Operand> operands) { builder_.launch(id, Stream::compute, hw::HostWork::op_optimizer, operands); }

  const StepSpec& spec_;
  Builder& builder_;
  std::vector<Unit> units_;  // the partition
  std::int64_t tensors_, elements_, p_, m_;
  BufferId gradients_, bit16_, flat_, staged_, norm_;
  EventId done_;
  AdamW adamw_;
};

}  // namespace stepcast::program
