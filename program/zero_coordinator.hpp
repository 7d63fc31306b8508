// Which parameters of ZeRO-3 are gathered when: fetched before a module, prefetched along the recorded trace of modules, released behind it. Follows
// deepspeed/runtime/zero/partitioned_param_coordinator.py under its names; docs/zero.md, "Stage 3". Test: tests/unit/zero3_test.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "program/builder.hpp"
#include "program/spec.hpp"
#include "program/zero_parameters.hpp"

namespace stepcast::program {

class ZeroCoordinator {
 public:
  using Module = std::size_t;
  static constexpr Module kNone = ~Module{0};

  /// `partition`: this rank's parts of all parameters, on the device unless offloaded.
  ZeroCoordinator(const StepSpec& spec, Builder& builder, BufferId partition);

  /// A module with the parameters of these numbers in `all`; `count` of the model's, where several are fetched together.
  Module add_module(std::string name, const std::vector<ZeroParameter>& all, const std::vector<std::size_t>& numbers, std::uint32_t count = 1);

  void fetch(Module module);
  void release(Module module);
  /// The end of a micro-batch: nothing stays gathered; from the first on the trace is known.
  void end_of_pass();

  [[nodiscard]] const std::string& name(Module module) const { return modules_[module].name; }
  /// One of the module's gathered parameters, which stands for all: they are taken and given back together. False: there is none, or what the kernel reads stays.
  [[nodiscard]] bool gathers(Module module) const { return !modules_[module].gathered.empty(); }
  [[nodiscard]] BufferId storage(Module module) const { return parameters_[modules_[module].gathered.front()].storage; }
  /// Not partitioned: below the persistence threshold, or there is but one rank.
  [[nodiscard]] bool persists(std::int64_t elements) const;
  [[nodiscard]] Stream stream() const { return stream_; }

  struct Carried {
    bool complete = false;
    std::deque<EventId> ongoing;
    bool operator==(const Carried&) const = default;
  };
  [[nodiscard]] Carried carried() const { return {complete_, ongoing_}; }

 private:
  enum class State : std::uint8_t { not_available, inflight, available };
  struct Parameter {
    std::string name;
    std::int64_t elements = 0, part = 0;  // of all ranks and of each
    BufferId storage = 0;
    State state = State::not_available;
    int active = 0;                 // modules that are using it
    std::int64_t fetched_for = -1;  // the last step of the trace for which it left the queue
    std::size_t gather = 0;         // in flight
  };
  struct ModuleEntry {
    std::string name;
    std::uint32_t count = 1;
    std::vector<std::size_t> gathered;  // parameters that are partitioned
    std::int64_t elements = 0;          // of all
  };
  struct Gather {
    std::vector<std::size_t> parameters;
    BufferId flat = 0;
    bool finished = false;
  };
  struct Use {
    std::size_t parameter;
    std::int64_t step;
  };

  std::size_t parameter(const ZeroParameter& parameter);
  void all_gather(const std::vector<std::size_t>& parameters);
  void gather_one(const Parameter& parameter);
  void gather_flat(Gather& gather);
  void wait(std::size_t parameter);
  void finish(Gather& gather);
  void take_from_queue(const std::vector<std::size_t>& fetched);
  void prefetch();
  [[nodiscard]] std::vector<bool> reused_soon() const;
  void free(std::size_t parameter);
  [[nodiscard]] std::int64_t part_bytes(std::int64_t part) const { return element_ * part; }
  void collective(std::int64_t bytes, std::initializer_list<Operand> operands);
  void launch(KernelId kernel, std::initializer_list<Operand> operands) { builder_.launch(kernel, stream_, hw::HostWork::op_forward, operands); }
  [[nodiscard]] KernelId copy_kernel(const char* op, std::int64_t bytes);
  [[nodiscard]] bool offloaded() const { return spec_.policy.cpu_offload == CpuOffload::parameters; }

  const StepSpec& spec_;
  Builder& builder_;
  BufferId partition_;
  std::int64_t element_;
  Stream stream_;  // DeepSpeed's all-gather stream, or compute
  std::vector<Parameter> parameters_;
  std::vector<ModuleEntry> modules_;
  std::vector<Gather> gathers_;  // of this pass

  std::vector<Module> trace_;
  std::vector<Use> queue_;  // of parameters along the trace
  std::size_t queued_ = 0;  // its head
  std::size_t step_ = 0;    // modules fetched in this pass
  std::int64_t live_ = 0;   // elements gathered or in flight
  bool complete_ = false;
  std::deque<EventId> ongoing_;  // fetches that the host has not seen end; lives across steps
  int fetches_ = 0;
  EventId tail_;
};

}  // namespace stepcast::program
