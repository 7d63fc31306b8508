// The groups of ranks that FSDP communicates in: the shard group, which gathers and reduce-scatters, and the replica group, which all-reduces what each of its
// members reduced. docs/fsdp1.md, "Strategies"; test: tests/unit/strategies_test.cpp.
#pragma once

#include <algorithm>

#include "program/spec.hpp"

namespace stepcast::program {

struct Groups {
  hw::GroupShape shard, replica;
};

inline bool is_hybrid(Sharding sharding) { return sharding == Sharding::hybrid_shard || sharding == Sharding::hybrid_shard_zero2; }

/// Ranks per shard group under hybrid sharding: those of a node, unless set.
inline std::int64_t hybrid_shard_size(const StepSpec& spec) { return spec.policy.shard_group_size.value_or(spec.world.ranks_per_node); }

/// Consecutive ranks among whom ZeRO-1 divides the optimizer's state: as many as set, else all. A part of a node, or whole nodes.
inline hw::GroupShape partition_group(const StepSpec& spec) {
  const hw::GroupShape world = spec.world;
  const auto size = static_cast<std::int32_t>(spec.policy.shard_group_size.value_or(world.ranks()));
  if (size >= world.ranks()) return world;
  const std::int32_t per_node = std::min(size, world.ranks_per_node);
  return {per_node, size / per_node};
}

/// A hybrid shard group is consecutive ranks: a part of a node, or whole nodes. Its size divides the world's and either divides a node's ranks or is a multiple of them.
inline Groups groups_of(const StepSpec& spec) {
  const hw::GroupShape world = spec.world, one{1, 1};
  if (spec.policy.sharding == Sharding::no_shard || spec.policy.framework == Framework::ddp) return {one, world};
  if (!is_hybrid(spec.policy.sharding)) return {world, one};
  if (world.ranks() == 1) return {one, one};
  const auto size = static_cast<std::int32_t>(hybrid_shard_size(spec));
  const std::int32_t per_node = std::min(size, world.ranks_per_node), nodes = size / per_node;
  return {{per_node, nodes}, {world.ranks_per_node / per_node, world.nodes / nodes}};
}

}  // namespace stepcast::program
