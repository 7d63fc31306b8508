// FSDP units: the wrapped blocks and the root, each with its flat parameter, the memory that belongs to it and the kernels and collectives that move it.
// Tensors, types and pools as in PyTorch torch/distributed/fsdp/_flat_param.py; docs/fsdp1.md, "Units". Test: tests/unit/fsdp1_test.cpp, tests/unit/memory_of_step_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/builder.hpp"
#include "program/model.hpp"
#include "program/wrapping.hpp"

namespace stepcast::program {

/// A kernel that only moves data.
hw::KernelShape memory_bound(hw::MemoryClass memory, std::int64_t read_bytes, std::int64_t write_bytes);

/// Bytes below: N = elements of the flat parameter, S = shard, W S = padded; p, r, m = bytes per element of parameters, reduction and master copy.
struct Unit {
  std::string name;         // "b3", "root"
  std::int32_t index = -1;  // first block; -1 for the root
  std::int64_t first_block = 0, block_count = 0;
  std::vector<ParameterEntry> entries;  // of its parameter tensors, named as in the model; `first` is not filled in
  struct GradientPlace {
    Part part;
    std::int64_t begin = 0;        // of the parameters that it is of, in the master
    std::int64_t state_begin = 0;  // and in the optimizer's state
  };
  std::vector<GradientPlace> gradients;  // real runs of DDP and of an optimizer in the backward: where each is; else all are in `sharded_grad`
  std::uint32_t tensors = 0;             // parameter tensors that the hooks point at buffers
  std::int64_t parameters = 0;           // their elements, without padding
  FlatParameter flat;
  // What has gradients and optimizer state: all, or the adapters beside frozen parameters; none in a unit that is frozen as a whole.
  std::uint32_t trained_tensors = 0;
  std::int64_t trained_parameters = 0, trained_shard = 0;
  bool root = false;
  std::string inner = {};                        // of one block: the name of the unit inside it; the rest of the block is the root's
  std::string outer = {};                        // of that unit: the one around it in the same block, if there is one
  std::vector<std::string> modules, but_for;     // of the blocks: the only ones that it holds, or those that it does not
  bool holds_ends = true;                        // root: what stands outside of the blocks
  bool own_embedding = false, own_head = false;  // the unit is the embedding's (with positions), or the head's (with the final norm), alone

  BufferId master = 0;                   // m S; parameters of the optimizer, always there
  BufferId low_shard = 0;                // p S; pre-unshard pool, the all-gather's input (the master itself without mixed precision)
  BufferId fetched_shard = 0;            // m S; pre-unshard pool, the master as copied from the host, if it lives there
  BufferId params = 0;                   // p W S; unshard pool, the all-gather's output
  BufferId flat_grad = 0;                // p N; concatenated gradient
  BufferId next_flat_grad = 0;           // p N; the same of a later micro-batch, while flat_grad accumulates
  BufferId reduce_grad = 0;              // r N; gradient in the reduction type
  BufferId padded_grad = 0;              // r W S; where W does not divide N
  BufferId reduced = 0;                  // r S; output of the reduce-scatter
  BufferId sharded_grad = 0;             // m S; what the optimizer reads; lives until zero_grad
  BufferId new_sharded_grad = 0;         // m S; of this micro-batch, to be added
  BufferId exp_avg = 0, exp_avg_sq = 0;  // m each, of what is trained

  KernelId cast_shard = 0, concat = 0, accumulate_flat = 0, cast_to_reduce = 0, pad = 0, pre_divide = 0, post_divide = 0, cast_to_master = 0, accumulate = 0;
  KernelId accumulate_into_master = 0, cast_master_to_reduce = 0, zero = 0;  // NO_SHARD: on a gradient that is already in the master type; zero_grad
  KernelId fetch_shard = 0, send_gradient = 0;                               // from and to the host
  std::uint32_t all_gather = 0, reduce_scatter = 0, all_reduce = 0;

  // Flags of PyTorch's handle (_runtime_utils.py).
  bool unsharded = false, prefetched = false;
  bool needs_pre_forward_unshard = false, needs_pre_backward_unshard = false, ran_pre_backward = false;
  bool has_flat_grad = false;     // an unsharded gradient is kept from an earlier micro-batch
  bool has_sharded_grad = false;  // a sharded gradient exists
};

/// Sets what is trained, the shard as that part of the unit's.
void count_trained(Unit& unit, const std::vector<ParameterTensor>& tensors);

/// What the types of a step imply for every unit.
struct UnitTypes {
  explicit UnitTypes(const StepSpec& spec);
  bool sharded;            // a shard group of more than one rank
  bool replicated;         // a replica group of more than one rank
  bool mixed;              // parameters are cast for compute
  bool cast_to_reduce;     // gradients are cast before the reduction
  bool cast_to_master;     // and after it
  bool offloaded;          // shards, gradients and the optimizer's state live on the host
  bool gradient_in_place;  // not sharded, one type: the flat gradient is what the optimizer reads
};

/// One unit for each block and one, last, for the rest: what frameworks without wrapping hang buffers on. Names and places only.
std::vector<Unit> blocks_and_root(const ModelShape& model);

/// Units in forward order, the root, if it has parameters, last. Names all their buffers, kernels and collectives in `builder`.
std::vector<Unit> make_units(const StepSpec& spec, Builder& builder);

/// The unit's tensors by name, in its order: those of its blocks, then those outside of blocks.
std::vector<std::pair<std::string, ParameterTensor>> named_tensors(const ModelShape& model, const Unit& unit);
/// The entry with this name; where none is called "head.weight", the embedding's stands for it (tied embeddings). Throws std::logic_error if there is none.
const ParameterEntry& entry_of(std::span<const Unit> units, const std::string& name);
/// The unit's entry that a gradient belongs to, by the label of its buffer ("b3.grad.q.weight").
const ParameterEntry& entry_of_gradient(const Unit& unit, const std::string& label);
/// All units' entries, in the order of the model: embedding, positions, blocks, final norm, head.
std::vector<ParameterEntry> all_parameters(const ModelShape& model, const std::vector<Unit>& units);

/// Whether a tensor of one of its blocks is the unit's.
bool holds(const Unit& unit, std::string_view tensor);
/// A parameter's name in its layer, by the label of its gradient's buffer: "q.weight" of "b3.grad.q.weight".
std::string gradient_name(std::string_view label);
/// The unit that holds this block's norms, and what no unit inside of it holds.
const Unit& unit_of_block(const std::vector<Unit>& units, std::int64_t block);
/// The unit of that name inside the block.
const Unit& inner_unit(const std::vector<Unit>& units, std::int64_t block, const std::string& name);
/// Casts of the weights of a unit inside a block that its backward reads in place of them: fp8 weights that are cast once.
std::vector<BufferId> saved_casts(const StepSpec& spec, const Program& program, const Unit& unit);

/// The unit that holds the embedding, and the one with the head: their own, or the root.
const Unit& embedding_unit(const std::vector<Unit>& units);
const Unit& head_unit(const std::vector<Unit>& units);

}  // namespace stepcast::program
