// The executor that predicts: runs a program against a price list and yields a trace and totals. Never asks a cost model while it runs.
// Semantics: docs/models.md, "Execution". Test: tests/unit/simulate_test.cpp, tests/model/.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hw_models/cost_model.hpp"
#include "hw_models/sim_time.hpp"
#include "memory/caching_allocator.hpp"
#include "program/program.hpp"
#include "sim/data_loader.hpp"
#include "sim/variation.hpp"
#include "trace/trace.hpp"

namespace stepcast::sim {

/// Prices of everything that a program names, in integer time; computed once per program and hardware.
struct PriceList {
  struct Kernel {
    SimTime alone{};
    double nccl_slowdown = 0, dram_share = 0, processor_share = 0;
  };
  struct Collective {
    SimTime alone{};
    double nvlink_share = 0, nic_share = 0, processor_share = 0;
  };
  std::vector<Kernel> kernels;          // by Program::kernels
  std::vector<Collective> collectives;  // by Program::collectives
  std::array<SimTime, hw::kHostWorkKinds> host{};
  SimTime launch_latency{};
  SimTime device_malloc{}, device_malloc_per_gib{}, device_free{}, flush{};
  SimTime batch{};  // host time to take a batch that is ready
};

PriceList price(const program::Program& program, const hw::CostModel& model);

/// What a call costs the host that makes it, waiting apart.
inline SimTime host_price(const PriceList& prices, const program::Op& op) {
  using program::OpKind;
  const auto price = [&prices](hw::HostWork work) { return prices.host[static_cast<std::size_t>(work)]; };
  if (op.kind == OpKind::alloc || op.kind == OpKind::free) return price(hw::HostWork::allocation);  // the most frequent first
  if (op.kind == OpKind::launch) return price(op.work);
  switch (op.kind) {
    case OpKind::collective: return price(hw::HostWork::collective_call);
    case OpKind::record: return price(hw::HostWork::event_record);
    case OpKind::wait: return price(hw::HostWork::stream_wait);
    case OpKind::host_work: return price(op.work) * static_cast<std::int64_t>(op.count);
    case OpKind::next_batch: return prices.batch;
    case OpKind::launch:
    case OpKind::alloc:
    case OpKind::free:
    case OpKind::host_wait:
    case OpKind::record_stream:
    case OpKind::mark: break;
  }
  return SimTime{};
}

/// Fixed-cost mode: times that the user gives, for teaching and for proving the schedules (docs/models.md, "Fixed costs").
struct FixedCosts {
  std::array<SimTime, 8> phases{};  // by hw::FixedPhase
  SimTime all_gather_block{}, all_gather_root{}, reduce_scatter_block{}, reduce_scatter_root{}, all_reduce_block{};
  SimTime host_per_kernel{}, host_per_collective{};
};

PriceList price(const program::Program& program, const FixedCosts& costs);

struct Options {
  std::int32_t ranks = 1;             // 1 = folded: one rank stands for all
  std::int32_t world_size = 1;        // ranks that the representative stands for
  std::int32_t record_from_step = 0;  // slices and memory samples of earlier steps are not kept
  std::int32_t recorded_ranks = 1;    // the first so many; at least one, at most all
  bool record_host = true;            // also host slices and memory samples, which only a trace file needs
  bool memory_limit = true;           // false: device memory is unlimited and the allocator is not run (fixed-cost mode)
  std::int64_t pool_bytes = 0;        // device memory less what lies outside the pool
  std::int32_t launch_queue_depth = 1024;
  bool one_queue = false;  // all streams share one hardware queue (CUDA_DEVICE_MAX_CONNECTIONS=1)
  memory::Settings allocator;
  LoaderSettings loader;
  VariationSettings variation;
};

enum class Outcome : std::uint8_t { ok, out_of_memory, deadlock };

struct OutOfMemory {
  std::string buffer;
  SimTime time{};
  std::int64_t requested = 0, segment = 0, allocated = 0, reserved = 0, limit = 0;
  std::int32_t step = 0;
  std::int64_t active = 0;                                // allocated, or freed and waiting for other streams
  std::array<std::int64_t, program::kOwners> by_owner{};  // of `allocated`
};

/// How a rank met others in the collectives of the recorded steps.
struct Waits {
  SimTime waited{};         // between its arrival and that of the last
  std::int64_t joined = 0;  // collectives in which somebody waited
  std::int64_t last = 0;    // of them: those for which it was the one to be waited for
};

struct Result {
  Outcome outcome = Outcome::ok;
  OutOfMemory out_of_memory;
  std::vector<std::string> deadlock;  // who waits for what
  std::vector<SimTime> step_end;      // end of the optimizer on the compute stream, per step: of the last rank
  memory::Statistics memory;          // at the end
  std::int64_t peak_allocated = 0, peak_active = 0, peak_reserved = 0;
  std::array<std::int64_t, program::kOwners> peak_by_owner{};  // at the moment of peak_allocated
  std::vector<std::int64_t> retries_per_step;
  std::vector<Waits> waits;  // by rank, over the recorded steps
  std::uint64_t events = 0;  // calls made by hosts and events of the queue
  trace::Trace trace;        // of the ranks that are recorded
};

/// All ranks run `program`.
Result simulate(const program::Program& program, const PriceList& prices, const Options& options);
/// Rank r runs programs[r % size]. They must share their tables (kernels, collectives, buffers, events) and have equally many steps; only the ops may differ.
Result simulate(std::span<const program::Program* const> programs, const PriceList& prices, const Options& options);

}  // namespace stepcast::sim
