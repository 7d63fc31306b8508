// A kind of layer as two lists of kernels over named tensors, forward and backward. Who saves what for the backward is not written down anywhere: a tensor is saved
// because the backward reads it. From the lists follow the host moments of every allocation and free, with and without recomputation. Test: tests/unit/layer_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/builder.hpp"

namespace stepcast::program {

using Slot = std::uint16_t;  // a tensor of a layer
inline constexpr Slot kNoSlot = 0xffff;

/// Where a tensor's memory comes from and where it is given back.
enum class Lives : std::uint8_t {
  here,     // taken by its first writer, given back after its last reader, be it in the backward
  input,    // taken elsewhere, given back here: the layer's input and the gradient of its output
  output,   // taken here, given back elsewhere: the layer's output, the gradient of its input, gradients of parameters
  outside,  // neither: parameters, token ids
};

struct Tensor {
  std::string name;
  std::int64_t bytes = 0;
  Owner owner = Owner::activations;
  Lives lives = Lives::here;
  bool held = false;  // a variable of the model's code keeps it until the forward returns
  bool kept = false;  // not recomputed
};

/// How a layer's launches are made and whether activations of its instances are dropped and recomputed.
struct LayerMode {
  hw::HostWork forward = hw::HostWork::op_forward, backward = hw::HostWork::op_backward;  // of each launch
  bool recompute = false;  // activation checkpointing: of the whole forward, unless a part of it is marked
  bool keeps_unread =
      false;               // what is chosen to be kept stays until the backward is over, read or not: eager selective checkpointing stores it by the op's name
  bool early_stop = true;  // recomputation ends with the last tensor that the backward needs
  bool reentrant = false;  // the recomputed output and its gradient are variables of checkpointing's own backward, which holds them until it returns
};

class Layer {
 public:
  /// `name` begins the labels of tensors that all instances share.
  Layer(Builder& builder, std::string_view name, LayerMode mode);

  // --- writing the lists: the forward first, then, after begin_backward, the backward
  Slot tensor(std::string name, std::int64_t bytes, Owner owner = Owner::activations, Lives lives = Lives::here);
  void kernel(std::string_view op, const hw::KernelShape& shape, std::span<const Slot> reads, std::span<const Slot> writes, std::uint32_t further_launches = 0);
  /// The host waits for the kernel written last: its result decides what is launched next.
  void synchronise();
  /// What the kernel written last computes, where the program is to be run for real. Parts of a tensor, in its own elements.
  struct SlotPart {
    Slot slot = kNoSlot;
    hw::Dtype dtype = hw::Dtype::fp32;
    std::int64_t begin = 0, count = 0;
  };
  void computes(Function function, std::vector<SlotPart> parts, const Attributes& attributes);
  void hold(Slot slot) { tensors_[slot].held = true; }
  /// The caller holds the layer's inputs until here; without this call, until the forward returns.
  void end_inputs() { inputs_end_ = launches_.size(); }
  void begin_backward() { forward_count_ = launches_.size(); }
  /// Recomputation is of the kernels between these two calls alone.
  void begin_recomputed() { region_ = {launches_.size(), launches_.size()}; }
  void end_recomputed() { region_.end = launches_.size(); }
  /// Such a part is recomputed at this point of the backward; the whole forward before its first kernel.
  void recomputed_here() { recompute_before_ = launches_.size(); }
  /// Recomputation keeps this tensor, and so does not run the kernel that writes it again.
  void keep(Slot slot) { tensors_[slot].kept = mode_.recompute; }
  /// Derives all plans. Throws std::logic_error if two tensors have one name.
  void finish();

  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }
  [[nodiscard]] std::int64_t bytes(Slot slot) const { return tensors_[slot].bytes; }
  /// Written in the forward and read in the backward (the layer's input too, if the backward reads it).
  [[nodiscard]] bool saved(Slot slot) const;

  /// Buffers of one instance by slot: shared ones for what never crosses from forward to backward, own ones ("b3.gate") else; `given` fixes the outer ones.
  /// `begin`: of the tensor in the buffer, in elements.
  struct Given {
    Slot slot;
    BufferId buffer;
    std::int64_t begin = 0;
  };
  struct Instance {
    std::vector<BufferId> buffers;
    std::vector<std::int64_t> begins;
    BufferId operator[](Slot slot) const { return buffers[slot]; }
  };
  [[nodiscard]] Instance instance(std::string_view instance_name, std::span<const Given> given);

  // --- making the calls for one instance; `drops`: its activations are not kept for the backward
  void forward(const Instance& instance) { forward(instance, mode_.recompute); }
  void forward(const Instance& instance, bool drops) { emit(drops ? forward_dropping_ : forward_saving_, instance, mode_.forward); }
  /// The backward, with the recomputation before the first kernel that needs it.
  void backward(const Instance& instance) { backward(instance, mode_.recompute); }
  void backward(const Instance& instance, bool drops);
  /// The two parts one by one, where the whole forward is recomputed.
  void recompute(const Instance& instance);
  void backward_of_recomputed(const Instance& instance) { emit(backward_dropping_.plan, instance, mode_.backward); }

 private:
  struct Launch {
    KernelId kernel;
    std::uint32_t first_operand, operand_count, further_launches;
    bool synchronises = false;
    std::int32_t compute = -1;  // index of what it computes
  };
  struct Compute {
    Function function;
    std::vector<SlotPart> parts;
    Attributes attributes;
  };
  struct SlotUse {
    Slot slot;
    Access access;
  };
  struct Action {
    enum class Kind : std::uint8_t { alloc, launch, free } kind;
    std::uint32_t index;  // slot or launch
  };
  using Plan = std::vector<Action>;
  struct Uses {  // indices of launches, -1 = none
    int first_write = -1, last_use = -1;
  };
  struct Launches {
    std::size_t begin = 0, end = 0;
  };
  struct Backward {
    Plan plan;
    std::size_t recompute_at = 0;  // action before which the recomputation runs
  };

  [[nodiscard]] std::span<const SlotUse> operands_of(std::size_t launch) const {
    return std::span(operands_).subspan(launches_[launch].first_operand, launches_[launch].operand_count);
  }
  [[nodiscard]] std::vector<std::size_t> range(std::size_t begin, std::size_t end) const;
  [[nodiscard]] std::vector<Uses> uses(std::span<const std::size_t> launches) const;
  [[nodiscard]] bool dropped(Slot slot) const;
  [[nodiscard]] bool stored(Slot slot) const;
  [[nodiscard]] std::vector<std::size_t> recomputed_launches() const;
  void find_survivors();
  template <typename Alloc, typename Free>
  [[nodiscard]] Plan plan(std::span<const std::size_t> launches, Alloc takes, Free gives_back) const;
  template <typename Alloc, typename Free>
  [[nodiscard]] Plan plan_with_held(std::span<const std::size_t> launches, Alloc takes, Free gives_back) const;
  [[nodiscard]] Plan plan_forward(bool drops) const;
  [[nodiscard]] Plan plan_recomputation() const;
  [[nodiscard]] Backward plan_backward(bool drops) const;
  [[nodiscard]] static std::size_t begin_of(std::size_t launch, const Plan& plan);
  [[nodiscard]] bool whole_forward_recomputed() const { return region_.begin == 0 && region_.end == forward_count_; }
  void free_inputs(Plan& plan, std::size_t at) const;
  [[nodiscard]] bool held_by_checkpoint(Slot slot) const;
  [[nodiscard]] bool shared(Slot slot) const { return tensors_[slot].lives == Lives::here && !saved(slot) && !survives_[slot]; }
  [[nodiscard]] bool taken_here(Slot slot) const { return tensors_[slot].lives == Lives::here || tensors_[slot].lives == Lives::output; }
  void emit(std::span<const Action> plan, const Instance& instance, hw::HostWork work);
  void emit_launch(const Launch& launch, std::size_t index, const Instance& instance, hw::HostWork work);
  [[nodiscard]] Call call(const Compute& compute, const Instance& instance) const;

  Builder& builder_;
  std::string name_;
  LayerMode mode_;
  std::size_t forward_count_ = 0, inputs_end_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<SlotUse> operands_;
  std::vector<Compute> computes_;
  std::vector<Launch> launches_;                    // the forward's, then the backward's
  std::vector<Uses> forward_uses_, backward_uses_;  // by slot
  Launches region_;                                 // of the recomputation
  std::size_t recompute_before_ = 0;                // launch of the backward
  std::vector<std::size_t> recomputed_;             // launches
  std::vector<bool> survives_;                      // by slot: kept by a dropping forward
  Plan forward_saving_, forward_dropping_, recompute_;
  Backward backward_saving_, backward_dropping_;
  MarkId recompute_begin_ = 0, recompute_end_ = 0;
  EventId synchronised_ = 0;
  std::vector<BufferId> shared_;  // by slot, where all instances share it
  std::vector<Operand> scratch_;
};

}  // namespace stepcast::program
