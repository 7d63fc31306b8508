// What happened: slices on the lanes of each rank, memory samples, and enough naming to write a profiler's file. One format for simulated and real steps and for imported profiles.
// Times are integer picoseconds since the start of the run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw_models/kernel.hpp"
#include "hw_models/sim_time.hpp"

namespace stepcast::trace {

enum class Category : std::uint8_t {
  host_op,       // an eager op or hook on the host thread
  host_runtime,  // a driver call: cudaLaunchKernel, cudaMalloc, cudaStreamSynchronize ...
  host_wait,     // the host blocks (rate limiter, synchronisation, allocator flush, data loader)
  annotation,    // ProfilerStep#n, phase and unit ranges
  kernel,
  collective
};

/// Why the host did not issue; told apart because each has another remedy.
enum class HostState : std::uint8_t { working, rate_limiter, synchronize, device_malloc, allocator_flush, data_loader, launch_queue_full, paused };

enum class Phase : std::uint8_t { none, forward, backward, optimizer };

inline constexpr std::int16_t kHostLane = -1;  // other lanes are stream numbers

/// One interval of one lane. `name` and `detail` index Trace::names / Trace::kernels / Trace::collectives by category.
struct Slice {
  SimTime begin{}, end{};
  std::uint32_t name = 0;
  std::uint32_t detail = 0;       // kernel: index into Trace::kernels; collective: into Trace::collectives
  std::uint32_t correlation = 0;  // ties a launch on the host to its kernel; 0 = none
  std::int32_t unit = -1;         // FSDP unit (block) in which it was issued
  std::int16_t lane = kHostLane;
  Category category = Category::kernel;
  HostState host_state = HostState::working;
  Phase phase = Phase::none;
  bool recompute = false;
  std::uint16_t step = 0;
};

/// What a host is at: every slice that it issues carries it.
struct Context {
  std::int32_t step = -1, unit = -1;
  Phase phase = Phase::none;
  bool recompute = false;
};

/// What of a slice of the host's lane without a name its context says.
inline void set(Slice& slice, const Context& context, Category category, SimTime begin, SimTime end) {
  slice.begin = begin;
  slice.end = end;
  slice.category = category;
  slice.unit = context.unit;
  slice.phase = context.phase;
  slice.step = static_cast<std::uint16_t>(context.step < 0 ? 0 : context.step);
  slice.recompute = context.recompute;
}

inline Slice slice_in(const Context& context, Category category, SimTime begin, SimTime end) {
  Slice slice;
  set(slice, context, category, begin, end);
  return slice;
}

/// In place: a slice that is written field by field and copied at once waits for its fields to leave the store buffer.
inline Slice& add_slice(std::vector<Slice>& slices, const Context& context, Category category, SimTime begin, SimTime end) {
  Slice& slice = slices.emplace_back();
  set(slice, context, category, begin, end);
  return slice;
}

struct MemorySample {
  SimTime time{};
  std::int64_t delta = 0;  // bytes taken (+) or given back (-) by this call; 0 for a change of the reserve alone
  std::int64_t allocated = 0, reserved = 0;
  std::uint64_t address = 0;
  std::uint32_t owner = 0;  // what for: index into Trace::owners
};

struct KernelInfo {
  hw::KernelShape shape;
  std::string name;
};

struct CollectiveInfo {
  hw::CollectiveShape shape;
  std::string label;
  bool strided = false;  // between replicas: the group has every n-th rank; else ranks in a row
};

/// Everything recorded about one rank. Slices of a lane are ordered by the time at which they ended; between lanes any order is fine.
/// Of a launch, the slice on the host lane that carries the correlation ends when the call returns; where an op and a driver call both carry it, the driver call counts.
/// Time during which the host is blocked is recorded once, as a `host_wait` (or as a driver call with a `host_state`).
struct RankTrace {
  std::int32_t rank = 0;
  std::vector<Slice> slices;
  std::vector<MemorySample> memory;
  std::vector<std::int64_t> held_before;  // bytes by owner before the first sample
};

struct StepMark {
  SimTime host_begin{}, host_end{};
  SimTime device_end{};  // end of the optimizer on the compute stream
};

struct Trace {
  std::vector<std::string> names;  // host slices and annotations
  std::vector<KernelInfo> kernels;
  std::vector<CollectiveInfo> collectives;
  std::vector<RankTrace> ranks;
  std::vector<StepMark> steps;       // all steps of the run, of the first rank
  std::vector<std::string> streams;  // lane number -> stream name
  std::vector<std::string> owners;   // of memory samples; empty where none is known
  std::uint16_t first_recorded_step = 0;
  std::int32_t world_size = 1;
  bool loader_workers = true;  // false: the training process prepares its batches itself
  std::string device_name;
  std::int64_t device_memory_bytes = 0;
};

}  // namespace stepcast::trace
