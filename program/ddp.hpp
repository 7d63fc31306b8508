// DistributedDataParallel (DDP) as the calls of its host thread: whole parameters on every rank, gradients all-reduced in buckets while the backward runs.
// Follows PyTorch torch/csrc/distributed/c10d/reducer.cpp and torch/nn/parallel/distributed.py; docs/ddp.md has the rules. Test: tests/unit/ddp_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "program/intercept.hpp"
#include "program/optimizer_in_backward.hpp"
#include "program/training_step.hpp"
#include "program/units.hpp"

namespace stepcast::program {

/// One unit per block and the root: what marks name and the optimizer works on. Whole parameters: the "shard" of each is all of it.
std::vector<Unit> make_ddp_units(const StepSpec& spec, Builder& builder);

/// Numbers of the tensors in each bucket: a bucket is closed by the tensor with which it reaches its cap. `bytes`: sizes in the order in which buckets are filled.
std::vector<std::vector<std::size_t>> assign_buckets(std::span<const std::int64_t> bytes, std::int64_t first_cap, std::int64_t cap);

class Ddp final : public TrainingStep {
 public:
  /// `units` as made by make_ddp_units. All must outlive this object.
  Ddp(const StepSpec& spec, Builder& builder, std::vector<Unit>& units, Work& work);

  /// Persistent memory of the reducer.
  void setup();
  /// What a step hands to the next one. Steps that begin alike are alike.
  struct Carried {
    bool gradients = false, optimizer_state = false, rebuilt = false;
    bool operator==(const Carried&) const = default;
  };
  [[nodiscard]] Carried carried() const { return {gradients_exist_, optimizer_state_, rebuilt_}; }

 private:
  static constexpr std::size_t kNone = GradientHooks::kNone;

  /// A parameter and where its gradient is.
  struct Parameter {
    std::int64_t elements = 0;
    std::size_t bucket = 0;
    std::int64_t begin = 0;  // in the bucket, in elements
    BufferId produced = 0;   // by the model's kernels, in the compute type
    BufferId gradient = 0;   // in the master type
    BufferId later = 0;      // the same of a later micro-batch, to be added
    KernelId cast_gradient = 0, add = 0, copy = 0, divide = 0;
    bool exists = false;     // .grad is there ...
    bool in_bucket = false;  // ... as a view of the bucket
  };
  struct Bucket {
    BufferId memory = 0;
    std::uint32_t all_reduce = 0;
    EventId reduced = 0;
    std::size_t size = 0, pending = 0;  // parameters
  };

  void zero_grad() override;
  void forward() override;
  void backward() override;

  void name_parameters();
  void name_steps();
  void name_buckets();
  void fill_buckets(std::span<const std::size_t> order, std::int64_t first_cap, const char* suffix);
  void add_bucket(const std::string& name, std::int64_t bytes, std::size_t size, bool outer);
  void rebuild_buckets();
  void place_gradients(Unit& unit) const;
  [[nodiscard]] Part gradient_part(const Parameter& parameter, BufferId buffer) const { return part(buffer, spec_.precision.master, parameter.elements); }
  [[nodiscard]] Part bucket_part(const Parameter& parameter) const {
    return part(buckets_[parameter.bucket].memory, spec_.precision.master, parameter.elements, parameter.begin);
  }
  Parameter parameter(BufferId produced);
  void cast_weights(const Unit& unit);
  void drop_weights(const Unit& unit);

  /// Makes the calls of `emit` and, after the last kernel that writes a gradient, the reducer's hook for it; not for the parameter `not_yet`.
  template <class Emit>
  void with_hooks(Emit emit, std::size_t not_yet = kNone);
  void gradient_ready(Parameter& parameter);
  void step_now(Parameter& parameter);
  void accumulate(Parameter& parameter);
  void bucket_ready(std::size_t bucket);
  void all_reduce(Bucket& bucket);
  void finalize();

  void extra(KernelId kernel, std::initializer_list<Operand> operands);
  [[nodiscard]] bool casts() const { return spec_.precision.param != spec_.precision.master; }
  [[nodiscard]] Unit& root() { return units_.back(); }

  std::vector<Unit>& units_;
  std::vector<Parameter> parameters_;  // in reverse registration order
  std::vector<Bucket> buckets_;
  std::optional<OptimizerInBackward> optimizer_in_backward_;  // parameters by their numbers here
  GradientHooks hooks_;
  std::vector<std::vector<KernelId>> casts_;  // of weights, by unit
  std::size_t shared_ = kNone;                // the parameter of tied embeddings: ready when the embedding has added its part
  std::size_t next_bucket_ = 0;
  bool gradients_exist_ = false;
  std::vector<std::size_t> arrival_;  // parameters in the order in which their gradients became ready, in the first backward that reduces
  bool rebuilt_ = false;              // the buckets are filled in that order
};

}  // namespace stepcast::program
