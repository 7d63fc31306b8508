// The executor that counts: FLOPs, DRAM traffic, launches, collectives and their wire bytes of a range of a program, and the model FLOPs that MFU and HFU are defined by.
// Definitions: docs/check.md, "Counting". Test: tests/unit/count_test.cpp.
#pragma once

#include <array>
#include <cstdint>

#include "hw_models/kernel.hpp"
#include "program/program.hpp"
#include "program/spec.hpp"

namespace stepcast::program {

/// Which FLOPs count as the model's: parameters and attention over all pairs (12 L h s per token), over causal pairs (half of that), or parameters only (6P).
enum class FlopsConvention : std::uint8_t { full_attention, causal_attention, six_p };
const char* name(FlopsConvention convention);

struct CollectiveCount {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  // big side, as CollectiveShape::bytes
  Bytes wire_bytes;        // that leave each rank on a ring: (W-1)/W of the bytes, twice that for an all-reduce
};

struct Counts {
  Flops executed;    // by all kernels, recomputation included, as they run (causal skipping, early stop)
  Flops recomputed;  // of those, within recompute marks
  Bytes dram;        // traffic of all kernels
  std::int64_t launches = 0;
  std::array<std::int64_t, hw::kHostWorkKinds> host_work{};  // units by HostWork
  std::array<CollectiveCount, 3> collectives{};              // by hw::CollectiveKind
  std::int64_t allocations = 0, frees = 0, host_waits = 0, batches = 0;
};

/// Totals of the ops of `range`, e.g. of one step.
Counts count(const Program& program, Range range);

/// FLOPs of forward and backward per token: 6 P, plus 12 L a d s (full) or 6 L a d s (causal) for attention; a heads, d head dimension, s sequence length, no recomputation
/// (Chowdhery et al., "PaLM", 2022, appendix B). `parameters` is the count that the caller stands by.
/// Frozen parameters have no weight gradients: 4 in place of 6 for each. With a sliding window s is what the window leaves of it: full attention counts twice the pairs of the band, causal attention the band.
Flops model_flops_per_token(const ModelShape& model, std::int64_t parameters, std::int64_t seq_len, FlopsConvention convention);

/// FLOPs of the recomputed kernels of a range by the same convention: attention over all pairs, half of them, or none; other kernels as executed.
Flops recomputed_flops(const Program& program, Range range, FlopsConvention convention);

const char* name(hw::HostWork work);

}  // namespace stepcast::program
