// Parameter groups of FSDP2 (fully_shard): what one call wraps, with the memory, kernels, collectives and events that belong to it. Every parameter is sharded by
// itself on its first dimension and padded by itself. Tensors, types and pools as in PyTorch torch/distributed/fsdp/_fully_shard/; docs/fsdp2.md, "Groups".
// Test: tests/unit/fsdp2_test.cpp, tests/unit/fsdp2_memory_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/builder.hpp"
#include "program/units.hpp"

namespace stepcast::program {

/// This rank's shard of a tensor that is trained, by itself. In elements.
struct TrainedShard {
  std::string name;                 // of the tensor in the model's part: "q.weight"
  std::int64_t count = 0;           // with padding
  std::int64_t begin = 0;           // in the group's shard
  std::int64_t gradient_begin = 0;  // in the shard of what is trained
};

/// Beside the Unit of the same index, which holds what the optimizer and the model's kernels need. S = shard of all parameters with their padding, W ranks;
/// p, r, m = bytes per element of parameters, reduction and master copy;
/// p is 1 for the weights that are gathered in fp8.
struct Fsdp2Group {
  enum class State : std::uint8_t { sharded, sharded_post_forward, unsharded };

  std::vector<BufferId> storages;   // p W s of each parameter; compute pool: what the all-gather is copied out to
  BufferId cast_shard = 0;          // p S; copy-in pool, only with mixed precision
  BufferId fetched_shard = 0;       // m S; copy-in pool, the master as copied from the host, if it lives there
  BufferId staging = 0;             // p W S; copy-in pool: the all-gather's input and output
  BufferId post_forward_shard = 0;  // p W S / M; compute pool, only if resharded among M ranks
  BufferId reduce_input = 0;        // r W S; compute pool
  BufferId reduce_output = 0;       // r S; reduce-scatter pool. The sharded gradient itself if the types agree and there is none yet

  KernelId cast = 0, copy_in = 0, copy_in_sub = 0, copy_out = 0, chunk_cat = 0, pre_divide = 0, post_divide = 0, cast_to_master = 0, accumulate = 0,
           copy_reduced = 0, fetch = 0, send = 0;  // the last two: of one parameter from and to the host
  KernelId cast_fp8 = 0;                           // of one weight's shard
  std::uint32_t fp8_weights = 0;                   // gathered in fp8
  std::int64_t fp8_shard = 0;                      // elements of their shards
  std::vector<TrainedShard> trained;               // for an optimizer in the backward
  std::vector<KernelId> clones;                    // of each parameter's part that is kept after the forward
  std::uint32_t all_gather = 0, all_gather_sub = 0, reduce_scatter = 0, all_reduce = 0;
  EventId gathered = 0, copied_out = 0, resharded = 0, reduced = 0, finished = 0;

  bool reshards_after_forward = true;
  bool unshards_in_backward = true;

  // The state of PyTorch's FSDPParamGroup.
  State state = State::sharded;
  bool pending = false;          // an all-gather is issued and not waited for
  bool has_accumulated = false;  // unsharded gradients of earlier micro-batches
  bool has_sharded_grad = false;
  bool unfinished = false;  // a reduction that compute has not waited for
  bool holds_reduce_output = false;
  bool holds_gradient = false;  // its copy to the host is not waited for
};

struct Fsdp2Groups {
  std::vector<Unit> units;  // root first if it has parameters beside groups of their own, else last
  std::vector<Fsdp2Group> groups;
};

/// Names all buffers, kernels, collectives and events in `builder`.
Fsdp2Groups make_fsdp2_groups(const StepSpec& spec, Builder& builder);

}  // namespace stepcast::program
