// What one block of a step launches and saves, for tests that compare it with sums by hand.
#pragma once

#include <map>
#include <string>

#include "program/build.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program::test {

/// One sequence of 4096 tokens through blocks of Llama-2-7B's shape; elements of the residual stream and of the feed-forward's inner width.
constexpr double kTokens = 4096, kHidden = 4096, kFfn = 11008, kHeads = 32, kTh = kTokens * kHidden, kTf = kTokens * kFfn;

/// What one phase of one block launches.
struct Tally {
  int launches = 0, further = 0, host_waits = 0 /* for results, not of the rate limiter */, gemms = 0, attention = 0, others = 0;
  double bytes = 0;  // of memory-bound kernels
  double gemm_flops = 0;
  int kernels() const { return launches + further; }
};

struct BlockTally {
  Tally forward, recompute, backward;
};

/// Block `index` of the second step; the gradient concat of the unit is left out of the backward.
inline BlockTally tally(const StepSpec& spec, int index = 1) {
  const Program p = build_program(spec, 2);
  BlockTally result;
  Tally* now = nullptr;
  Tally* outer = nullptr;
  for (const Op& op : p.slice(p.steps[1])) {
    if (op.kind == OpKind::mark) {
      const MarkEntry& mark = p.marks[op.id];
      if (mark.kind == MarkKind::unit && mark.index == index)
        now = !mark.begin ? nullptr : mark.label.rfind("forward", 0) == 0 ? &result.forward : &result.backward;
      if (mark.kind == MarkKind::recompute && now) {
        if (mark.begin) outer = now, now = &result.recompute;
        else now = outer;
      }
    }
    if (!now) continue;
    if (op.kind == OpKind::host_wait && op.count == static_cast<std::uint32_t>(WaitReason::synchronize)) ++now->host_waits;
    if (op.kind == OpKind::host_work && op.work == hw::HostWork::extra_launch) now->further += static_cast<int>(op.count);
    if (op.kind != OpKind::launch || op.stream != Stream::compute || p.kernels[op.id].op.rfind("SplitWith", 0) == 0) continue;
    const hw::KernelShape& shape = p.kernels[op.id].shape;
    ++now->launches;
    if (shape.kind == hw::KernelKind::gemm) ++now->gemms, now->gemm_flops += hw::executed_flops(shape).si();
    else if (shape.kind == hw::KernelKind::memory_bound) ++now->others, now->bytes += static_cast<double>(shape.read_bytes + shape.write_bytes);
    else ++now->attention;
  }
  return result;
}

inline StepSpec two_blocks(ModelShape model) {
  model.layers = 2;
  model.max_positions = 4096;
  return reference_step(model);
}

/// Bytes per token that are live at the end of the forward and belong to block `index`, apart from gathered parameters.
inline double saved_per_token(const StepSpec& spec, int index) {
  const Program p = build_program(spec, 1);
  std::map<std::uint32_t, std::int64_t> live;
  std::string prefix = "b" + std::to_string(index) + ".";
  for (const Op& op : p.slice(p.steps[0])) {
    if (op.kind == OpKind::alloc) live[op.id] = p.buffers[op.id].bytes;
    if (op.kind == OpKind::free) live.erase(op.id);
    if (op.kind == OpKind::mark && p.marks[op.id].kind == MarkKind::forward && !p.marks[op.id].begin) break;
  }
  double bytes = 0;
  for (const auto& [id, size] : live) {
    if (p.buffers[id].owner == Owner::activations && p.buffers[id].label.rfind(prefix, 0) == 0) bytes += static_cast<double>(size);
  }
  return bytes / static_cast<double>(tokens(spec.batch));
}

}  // namespace stepcast::program::test
