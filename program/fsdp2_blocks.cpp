// Blocks of FSDP2: those of a group, with the hooks of groups inside of them; groups that no gradient passes through. docs/fsdp2.md, "Groups".
#include <algorithm>
#include <vector>

#include "program/fsdp2.hpp"

namespace stepcast::program {

void Fsdp2::watch_inner_units() {
  for (Index i = 0; i < wrapped_.units.size(); ++i) {
    if (unit(i).inner.empty()) continue;
    if (!unit(i).outer.empty())
      inner_uses_.nest(i, static_cast<Index>(&inner_unit(wrapped_.units, unit(i).first_block, unit(i).outer) - wrapped_.units.data()));
    for (const BufferId storage : group(i).storages) inner_uses_.watch(i, storage);
    for (const BufferId cast : saved_casts(spec_, builder_.program(), unit(i))) inner_uses_.watch(i, cast);
    for (const BufferId gradient : work_.block_gradients(unit(i).first_block)) {
      if (holds(unit(i), gradient_name(builder_.program().buffers[gradient].label))) inner_uses_.watch(i, gradient);
    }
  }
}

void Fsdp2::blocks_forward(std::int64_t first, std::int64_t count) {
  for (std::int64_t block = first; block < first + count; ++block) {
    const auto forward = [&] { work_.block_forward(block); };
    if (inner_uses_.empty()) forward();
    else
      inner_uses_.run(
          builder_, forward, [&](Index inner) { pre_forward(inner); }, [&](Index inner) { post_forward(inner); });
  }
}

void Fsdp2::blocks_backward(std::int64_t first, std::int64_t count) {
  for (std::int64_t block = first + count; block-- > first;) {
    if (inner_uses_.empty()) work_.block_backward(block);
    else inner_backward(block);
  }
}

/// A checkpoint around the block runs the hooks of groups inside of it once more, when the backward asks for what was dropped: the group that does, and those around it, have run their
/// pre-backward by then, and their hooks return at once.
void Fsdp2::inner_backward(std::int64_t block) {
  std::vector<Index> ran;
  const auto has_run = [&](Index inner) { return std::find(ran.begin(), ran.end(), inner) != ran.end(); };
  const auto is_root = [&](Index inner) { return inner_uses_.outer_of(inner) == UnitUses::kNone || has_run(inner_uses_.outer_of(inner)); };
  inner_uses_.run(
      builder_, [&] { work_.block_backward(block); },
      [&](Index inner) {
        if (spec_.recompute.mode == RecomputeMode::per_op || !work_.recomputes(block)) return;
        ran.push_back(inner);
        pre_backward(inner);
      },
      [&](Index inner, bool rebuilding) {
        if (has_run(inner)) return;
        if (rebuilding) rebuilding_pre_forward(inner, is_root(inner));
        else pre_backward(inner);
      },
      [&](Index inner, bool rebuilding) {
        if (!rebuilding) post_backward(inner);
        else if (!has_run(inner)) rebuilding_post_forward(is_root(inner));
      });
}

/// No root's forward is running, so the outermost group takes itself for the root: its streams wait for compute (FSDPState._root_pre_forward).
void Fsdp2::rebuilding_pre_forward(Index i, bool root) {
  builder_.host_work(hw::HostWork::fsdp2_pre_forward);
  if (root) {
    stream_wait(Stream::copy_in, Stream::compute);
    stream_wait(Stream::all_gather, Stream::compute);
  }
  unshard(i);
  wait_for_unshard(i, true);
}

/// It keeps its parameters for the backward and its place in the order of the forward (FSDPParamGroup.post_forward, is_bw); as the root it gives its staging buffer back.
void Fsdp2::rebuilding_post_forward(bool root) {
  builder_.host_work(hw::HostWork::fsdp2_post_forward);
  if (root) end_of_forward();
}

bool Fsdp2::has_backward(Index i) {
  const Unit& u = unit(i);
  if (u.own_embedding) return !embedding_is_frozen(spec_.model);
  return u.root || u.own_head || u.first_block + u.block_count > blocks_without_backward(spec_.model);
}

/// A gather that was prefetched and that nobody has waited for (finalize_backward, "mistargeted unshard"): of a group without a backward, or whose backward was over. And what such
/// a group keeps after the forward.
void Fsdp2::end_mistargeted(Index i) {
  Fsdp2Group& g = group(i);
  if (g.pending) {
    builder_.wait(Stream::compute, g.gathered);
    builder_.free(g.staging);
    g.pending = false;
  }
  if (!has_backward(i) && g.state == Fsdp2Group::State::unsharded) to_sharded(i);
}

}  // namespace stepcast::program
