// Blocks of FSDP1: those of a unit, with the hooks of units inside of them; recomputation around a unit; units that no gradient passes through. docs/fsdp1.md, "Units".
#include "program/fsdp1.hpp"

namespace stepcast::program {

void Fsdp1::watch_inner_units() {
  for (const Unit& unit : units_) {
    if (unit.inner.empty()) continue;
    inner_uses_.watch(position(unit), unit.params);
    for (const BufferId cast : saved_casts(spec_, builder_.program(), unit)) inner_uses_.watch(position(unit), cast);
    if (!unit.outer.empty()) inner_uses_.nest(position(unit), position(inner_unit(units_, unit.first_block, unit.outer)));
    for (const BufferId gradient : work_.block_gradients(unit.first_block)) {
      if (holds(unit, gradient_name(builder_.program().buffers[gradient].label))) inner_uses_.watch(position(unit), gradient);
    }
  }
}

void Fsdp1::blocks_forward(std::int64_t first, std::int64_t count) {
  for (std::int64_t block = first; block < first + count; ++block) {
    const auto forward = [&] { work_.block_forward(block); };
    if (inner_uses_.empty()) {
      forward();
      continue;
    }
    inner_uses_.run(
        builder_, forward, [&](std::size_t inner) { pre_forward(&units_[inner]); },
        [&](std::size_t inner) { post_forward(&units_[inner], has_backward(units_[inner]) && !(spec_.recompute.reentrant && rebuilds(block))); });
  }
}

void Fsdp1::blocks_backward(std::int64_t first, std::int64_t count) {
  for (std::int64_t block = first + count; block-- > first;) {
    if (inner_uses_.empty()) work_.block_backward(block);
    else inner_backward(block);
  }
}

/// A checkpoint around the block runs the hooks of units inside of it once more, and this time too they install those of the backward. The non-reentrant kind begins when the backward asks for what was
/// dropped: the unit that does has run its pre-backward by then, and returns from its hooks at once.
void Fsdp1::inner_backward(std::int64_t block) {
  inner_uses_.run(
      builder_, [&] { work_.block_backward(block); },
      [&](std::size_t inner) {
        if (rebuilds(block) && !spec_.recompute.reentrant) pre_backward(&units_[inner]);
      },
      [&](std::size_t inner, bool rebuilding) {
        if (!rebuilding) return pre_backward(&units_[inner]);
        if (!units_[inner].ran_pre_backward) pre_forward(&units_[inner]);
      },
      [&](std::size_t inner, bool rebuilding) {
        if (rebuilding) {
          if (!units_[inner].ran_pre_backward) post_forward(&units_[inner]);
          return;
        }
        accumulate_flat_gradient(units_[inner]);
        post_backward(units_[inner]);
      });
}

/// Whether a checkpoint stands around the whole block.
bool Fsdp1::rebuilds(std::int64_t block) const { return spec_.recompute.mode != RecomputeMode::per_op && work_.recomputes(block); }

void Fsdp1::unit_backward(Unit& unit) {
  const bool outside = recomputes_outside(unit);
  if (outside) outer_recompute(unit);
  pre_backward(&unit);
  if (outside) work_.block_backward_of_recomputed(unit.first_block);
  else blocks_backward(unit.first_block, unit.block_count);
  accumulate_flat_gradient(unit);
  post_backward(unit);
}

/// Reentrant checkpointing around the unit runs the unit's whole forward again, hooks included: it gathers once more, and this time the backward's hooks are installed.
void Fsdp1::outer_recompute(Unit& unit) {
  pre_forward(&unit);
  work_.block_recompute(unit.first_block);
  post_forward(&unit);
}

/// Around a unit of one block; the non-reentrant kind behaves like checkpointing inside the unit, since the hooks return at once during its recomputation.
bool Fsdp1::recomputes_outside(const Unit& unit) const {
  const Recompute& recompute = spec_.recompute;
  return recompute.nesting == Nesting::outside && recompute.reentrant && unit.block_count == 1 && !unit.root && work_.recomputes(unit.first_block);
}

bool Fsdp1::has_backward(const Unit& unit) const {
  if (unit.own_embedding) return !embedding_is_frozen(spec_.model);
  return unit.root || unit.own_head || unit.first_block + unit.block_count > blocks_without_backward(spec_.model);
}

}  // namespace stepcast::program
