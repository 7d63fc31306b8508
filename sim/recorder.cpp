// Names are laid out once: kernels' ops, collectives, host work, waits, marks; a slice refers to them by index.
#include "sim/recorder.hpp"

#include <algorithm>
#include <string>

namespace stepcast::sim {

namespace {

constexpr std::uint32_t kUnnamed = ~std::uint32_t{0};
constexpr const char* kWorkNames[hw::kHostWorkKinds] = {"",
                                                        "op_forward",
                                                        "op_backward",
                                                        "op_compiled",
                                                        "op_optimizer",
                                                        "extra_launch",
                                                        "c10d::collective",
                                                        "FullyShardedDataParallel._pre_forward",
                                                        "FullyShardedDataParallel._post_forward",
                                                        "FullyShardedDataParallel._pre_backward_hook",
                                                        "FullyShardedDataParallel._post_backward_hook",
                                                        "FullyShardedDataParallel._root_pre_forward",
                                                        "FullyShardedDataParallel._post_backward_final_callback",
                                                        "FlatParamHandle._use_unsharded_views",
                                                        "FlatParamHandle._use_sharded_views",
                                                        "cudaEventRecord",
                                                        "cudaStreamWaitEvent",
                                                        "allocator",
                                                        "train_step",
                                                        "FSDP::pre_forward",
                                                        "FSDP::post_forward",
                                                        "FSDP::pre_backward",
                                                        "FSDP::post_backward",
                                                        "FSDP::root_pre_forward",
                                                        "FSDP::root_post_backward_callback",
                                                        "DTensor dispatch",
                                                        "DistributedDataParallel.forward",
                                                        "Reducer::finalize_backward",
                                                        "Reducer::autograd_hook",
                                                        "reduce_partition_and_remove_grads",
                                                        "reduce_ipg_grads",
                                                        "PartitionedParameterCoordinator.fetch_sub_module",
                                                        "PartitionedParameterCoordinator.release_sub_module",
                                                        "overlapping_partition_gradients_reduce_epilogue",
                                                        "DeepSpeedZeroOptimizer.step",
                                                        "cpu adam",
                                                        "cpu adam by tensor",
                                                        "cpu pass",
                                                        "op_megatron_forward",
                                                        "op_megatron_backward"};
constexpr const char* kWaitNames[] = {
    "working", "FullyShardedDataParallel.rate_limiter", "cudaStreamSynchronize", "cudaMalloc", "cudaFree", "DataLoaderNext", "launch queue full", "host pause"};

}  // namespace

Recording::Recording(const program::Program& program, const Options& options)
    : program_(program), options_(options), step_names_(program.steps.size(), kUnnamed) {
  trace_.ranks.resize(static_cast<std::size_t>(std::clamp(options.recorded_ranks, 1, options.ranks)));
  trace_.world_size = options.ranks > 1 ? options.ranks : options.world_size;
  trace_.loader_workers = options.loader.workers > 0;
  trace_.first_recorded_step = static_cast<std::uint16_t>(options.record_from_step);
  name_everything();
}

void Recording::name_everything() {
  auto& names = trace_.names;
  for (const auto& kernel : program_.kernels) {
    names.push_back(kernel.op);
    trace_.kernels.push_back({kernel.shape, kernel.kernel});
  }
  collective_names_ = static_cast<std::uint32_t>(names.size());
  for (const auto& collective : program_.collectives) {
    names.push_back(collective.label);
    trace_.collectives.push_back({collective.shape, collective.label, collective.communicator == program::Communicator::replica});
  }
  work_names_ = static_cast<std::uint32_t>(names.size());
  names.insert(names.end(), std::begin(kWorkNames), std::end(kWorkNames));
  wait_names_ = static_cast<std::uint32_t>(names.size());
  names.insert(names.end(), std::begin(kWaitNames), std::end(kWaitNames));
  mark_names_ = static_cast<std::uint32_t>(names.size());
  for (const auto& mark : program_.marks) names.push_back(mark.label);
  driver_name_ = static_cast<std::uint32_t>(names.size());
  names.emplace_back("cudaLaunchKernel");
  for (std::size_t o = 0; o < program::kOwners; ++o) trace_.owners.emplace_back(program::name(static_cast<program::Owner>(o)));
  for (std::size_t s = 0; s < program::kStreams; ++s) trace_.streams.emplace_back(program::name(static_cast<program::Stream>(s)));
}

void Recording::step_end(std::uint32_t step, SimTime now) {
  if (step < trace_.steps.size()) trace_.steps[step].device_end = now;
}

std::uint32_t Recording::name_of_step(std::size_t step) {
  if (step_names_[step] == kUnnamed) {
    step_names_[step] = static_cast<std::uint32_t>(trace_.names.size());
    trace_.names.push_back("ProfilerStep#" + std::to_string(step));
  }
  return step_names_[step];
}

Recorder::Recorder(Recording& recording, std::uint32_t rank) : all_(recording), own_(recording.trace_.ranks[rank]) {
  const program::Program& program = all_.program_;
  const Options& options = all_.options_;
  own_.rank = static_cast<std::int32_t>(rank);
  own_.held_before.resize(program::kOwners);
  // A recorded step has at most three slices per call, and one memory sample.
  const std::size_t steps = program.steps.size() - std::min(program.steps.size(), static_cast<std::size_t>(std::max(options.record_from_step, 0)));
  const std::size_t calls = program.steps.empty() ? 0 : program.steps.back().end - program.steps.back().begin;
  own_.slices.reserve(steps * calls * (options.record_host ? 2 : 1));
  if (options.record_host) own_.memory.reserve(steps * calls / 2);
  contexts_.reserve(program.steps.size() * program.marks.size());
}

void Recorder::enter_step(std::int32_t step, SimTime now) {
  contexts_.push_back({step, -1, trace::Phase::none, false});
  step_begin_ = now;
  if (own_.rank == 0) all_.trace_.steps.push_back({now, now, now});
}

void Recorder::leave_step(SimTime now) {
  if (own_.rank == 0) all_.trace_.steps.back().host_end = now;
  if (!on()) return;
  auto& annotation = trace::add_slice(own_.slices, contexts_.back(), trace::Category::annotation, step_begin_, now);
  annotation.name = all_.name_of_step(static_cast<std::size_t>(contexts_.back().step));
  annotation.unit = -1;
}

void Recorder::mark(const program::MarkEntry& entry, SimTime now) {
  trace::Context next = contexts_.back();
  switch (entry.kind) {
    case program::MarkKind::step: return;  // the engine knows steps by their range of ops
    case program::MarkKind::forward: next.phase = entry.begin ? trace::Phase::forward : trace::Phase::none; break;
    case program::MarkKind::backward: next.phase = entry.begin ? trace::Phase::backward : trace::Phase::none; break;
    case program::MarkKind::optimizer: next.phase = entry.begin ? trace::Phase::optimizer : trace::Phase::none; break;
    case program::MarkKind::unit: next.unit = entry.begin ? entry.index : -1; break;
    case program::MarkKind::recompute: next.recompute = entry.begin; break;
  }
  const auto id = static_cast<std::uint32_t>(&entry - all_.program_.marks.data());
  if (entry.begin) {
    open_marks_.emplace_back(id, now);
  } else if (!open_marks_.empty()) {
    const auto [opened, begin] = open_marks_.back();
    open_marks_.pop_back();
    if (on() && all_.options_.record_host) {
      auto& annotation = trace::add_slice(own_.slices, contexts_.back(), trace::Category::annotation, begin, now);
      annotation.name = all_.mark_names_ + opened;
    }
  }
  contexts_.push_back(next);
}

std::uint32_t Recorder::host_call(const program::Op& op, SimTime begin, SimTime end, SimTime driver) {
  if (!on()) return 0;
  ++all_.correlation_;
  auto& call = trace::add_slice(own_.slices, contexts_.back(), trace::Category::host_runtime, end - std::min(driver, end - begin), end);
  call.correlation = all_.correlation_;
  call.name = all_.driver_name_;
  if (all_.options_.record_host) {
    auto& whole = trace::add_slice(own_.slices, contexts_.back(), trace::Category::host_op, begin, end);
    whole.name = op.kind == program::OpKind::launch ? op.id : all_.collective_names_ + op.id;
  }
  return all_.correlation_;
}

void Recorder::host_work(const program::Op& op, SimTime begin, SimTime end) {
  if (!on() || !all_.options_.record_host || begin == end) return;
  auto& work = trace::add_slice(own_.slices, contexts_.back(), trace::Category::host_op, begin, end);
  work.name = all_.work_names_ + static_cast<std::uint32_t>(op.work);
}

void Recorder::host_wait(trace::HostState state, SimTime begin, SimTime end) {
  if (!on() || begin == end) return;
  auto& wait = trace::add_slice(own_.slices, contexts_.back(), trace::Category::host_wait, begin, end);
  wait.host_state = state;
  wait.name = all_.wait_names_ + static_cast<std::uint32_t>(state);
}

void Recorder::device(const program::Op& op, const Item& item, program::Stream stream, SimTime begin, SimTime end) {
  const trace::Context& context = contexts_[item.context];
  if (context.step < all_.options_.record_from_step) return;
  const bool kernel = op.kind == program::OpKind::launch;
  auto& work = trace::add_slice(own_.slices, context, kernel ? trace::Category::kernel : trace::Category::collective, begin, end);
  work.name = kernel ? op.id : all_.collective_names_ + op.id;
  work.detail = op.id;
  work.correlation = item.correlation;
  work.lane = static_cast<std::int16_t>(stream);
}

}  // namespace stepcast::sim
