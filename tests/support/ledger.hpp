// Live and peak bytes of a program, from its allocs and frees in host order: by owner within each phase, and by pool.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "program/build.hpp"

namespace stepcast::program::test {

using BytesByOwner = std::array<std::int64_t, kOwners>;
inline std::int64_t& of(BytesByOwner& bytes, Owner owner) { return bytes[static_cast<std::size_t>(owner)]; }

struct Ledger {
  std::map<std::string, BytesByOwner> at_end, peak;  // by "forward", "backward", "optimizer"; of the last step
  std::map<std::string, std::int64_t> peak_total;
  std::map<std::string, std::array<std::int64_t, kStreams>> pool_peak;
};

inline Ledger ledger(const Program& p) {
  Ledger result;
  BytesByOwner live{};
  std::array<std::int64_t, kStreams> pools{};
  std::vector<Stream> pool_of(p.buffers.size());
  std::string phase;
  const auto change = [&](std::uint32_t buffer, std::int64_t sign) {
    of(live, p.buffers[buffer].owner) += sign * p.buffers[buffer].bytes;
    pools[static_cast<std::size_t>(pool_of[buffer])] += sign * p.buffers[buffer].bytes;
  };
  const auto walk = [&](Range range) {
    for (const Op& op : p.slice(range)) {
      const bool mark = op.kind == OpKind::mark && p.marks[op.id].kind != MarkKind::unit && p.marks[op.id].kind != MarkKind::recompute;
      if (mark && !p.marks[op.id].begin) result.at_end[p.marks[op.id].label] = live;
      if (mark) phase = p.marks[op.id].begin ? p.marks[op.id].label : std::string();
      if (op.kind == OpKind::alloc) pool_of[op.id] = op.stream, change(op.id, 1);
      if (op.kind == OpKind::free) change(op.id, -1);
      std::int64_t total = 0;
      for (std::size_t i = 0; i < kOwners; ++i) result.peak[phase][i] = std::max(result.peak[phase][i], live[i]), total += live[i];
      for (std::size_t s = 0; s < kStreams; ++s) result.pool_peak[phase][s] = std::max(result.pool_peak[phase][s], pools[s]);
      result.peak_total[phase] = std::max(result.peak_total[phase], total);
    }
  };
  walk(p.setup);
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    if (i + 1 == p.steps.size()) result = {};
    walk(p.steps[i]);
  }
  return result;
}

/// Of the last of so many steps of a specification.
inline Ledger ledger(const StepSpec& spec, int steps = 2) { return ledger(build_program(spec, steps)); }

}  // namespace stepcast::program::test
