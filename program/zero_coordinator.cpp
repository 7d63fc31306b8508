// Fetch, prefetch, release. Read beside DeepSpeed's partitioned_param_coordinator.py (fetch_sub_module, release_sub_module) and partition_parameters.py (all_gather_coalesced).
#include "program/zero_coordinator.hpp"

#include <algorithm>

#include "program/host_copies.hpp"

namespace stepcast::program {
namespace {

constexpr std::size_t kMaxOngoingFetches = 2;  // __max_ongoing_fetch_events

}  // namespace

ZeroCoordinator::ZeroCoordinator(const StepSpec& spec, Builder& builder, BufferId partition)
    : spec_(spec),
      builder_(builder),
      partition_(partition),
      element_(hw::bytes_per_element(spec.precision.param)),
      stream_(spec.policy.overlap_comm ? Stream::all_gather : Stream::compute),
      tail_(builder.event("tail of all_gather")) {}

bool ZeroCoordinator::persists(std::int64_t elements) const {
  const bool alone = spec_.world.ranks() == 1 && !offloaded();
  return alone || elements <= spec_.policy.stage3_param_persistence_threshold;
}

ZeroCoordinator::Module ZeroCoordinator::add_module(std::string name, const std::vector<ZeroParameter>& all, const std::vector<std::size_t>& numbers,
                                                    std::uint32_t count) {
  ModuleEntry entry{std::move(name), count, {}, 0};
  for (const std::size_t number : numbers) {
    entry.elements += all[number].elements;
    if (!persists(all[number].elements)) entry.gathered.push_back(parameter(all[number]));
  }
  modules_.push_back(std::move(entry));
  return modules_.size() - 1;
}

/// A parameter may belong to two modules (tied embeddings).
std::size_t ZeroCoordinator::parameter(const ZeroParameter& wanted) {
  const auto known = std::find_if(parameters_.begin(), parameters_.end(), [&](const Parameter& p) { return p.name == wanted.name; });
  if (known != parameters_.end()) return static_cast<std::size_t>(known - parameters_.begin());
  Parameter fresh;
  fresh.name = wanted.name;
  fresh.elements = wanted.elements;
  fresh.part = partition_elements(wanted.elements, spec_.world.ranks());
  fresh.storage = builder_.buffer(wanted.name + ".gathered", part_bytes(fresh.part) * spec_.world.ranks(), Owner::all_gather);
  parameters_.push_back(std::move(fresh));
  return parameters_.size() - 1;
}

// --- fetch_sub_module --------------------------------------------------------------------------------------------------------------------------------

void ZeroCoordinator::fetch(Module module) {
  builder_.host_work(hw::HostWork::zero_pre_module, modules_[module].count);
  if (!complete_) trace_.push_back(module);
  const std::vector<std::size_t>& wanted = modules_[module].gathered;
  std::vector<std::size_t> missing;
  for (const std::size_t i : wanted) {
    if (parameters_[i].state == State::not_available) missing.push_back(i);
  }
  all_gather(missing);
  for (const std::size_t i : wanted) {
    ++parameters_[i].active;
    if (parameters_[i].state == State::inflight) wait(i);
  }
  if (!wanted.empty() && stream_ != Stream::compute) {
    builder_.record(tail_, stream_);
    builder_.wait(Stream::compute, tail_);
  }
  if (complete_) {
    take_from_queue(wanted);
    prefetch();
  }
  ++step_;
}

/// So that what is fetched now is not prefetched again. What an earlier prefetch took is not looked for.
void ZeroCoordinator::take_from_queue(const std::vector<std::size_t>& fetched) {
  auto open = std::count_if(fetched.begin(), fetched.end(), [&](std::size_t i) { return parameters_[i].fetched_for < static_cast<std::int64_t>(step_); });
  for (; open > 0 && queued_ < queue_.size(); ++queued_) {
    parameters_[queue_[queued_].parameter].fetched_for = queue_[queued_].step;
    --open;
  }
}

/// One all-gather of the next parameters along the trace, up to the prefetch bucket and as many as may be live.
void ZeroCoordinator::prefetch() {
  const std::int64_t most = std::min(spec_.policy.stage3_max_live_parameters - live_, spec_.policy.stage3_prefetch_bucket_size);
  std::vector<std::size_t> next;
  std::int64_t elements = 0;
  for (; queued_ < queue_.size() && elements < most; ++queued_) {
    const Use use = queue_[queued_];
    Parameter& p = parameters_[use.parameter];
    p.fetched_for = std::max(p.fetched_for, use.step);
    if (p.state != State::not_available || std::find(next.begin(), next.end(), use.parameter) != next.end()) continue;
    next.push_back(use.parameter);
    elements += p.elements;
  }
  all_gather(next);
}

void ZeroCoordinator::all_gather(const std::vector<std::size_t>& parameters) {
  if (parameters.empty()) return;
  for (const std::size_t i : parameters) {
    parameters_[i].state = State::inflight;
    parameters_[i].gather = gathers_.size();
    live_ += parameters_[i].elements;
  }
  Gather& gather = gathers_.emplace_back(Gather{parameters, 0, false});
  if (parameters.size() > 1) gather_flat(gather);
  else gather_one(parameters_[parameters.front()]);
}

/// Straight into the parameter's memory.
void ZeroCoordinator::gather_one(const Parameter& p) {
  builder_.alloc(p.storage, stream_);
  if (spec_.world.ranks() == 1) return launch(copy_to_device(builder_, part_bytes(p.part)), {out(p.storage)});
  const std::int64_t whole = part_bytes(p.part) * spec_.world.ranks();
  if (!offloaded()) return collective(whole, {in(partition_), out(p.storage)});
  const BufferId part = builder_.buffer(p.name + ".part", part_bytes(p.part), Owner::all_gather);
  builder_.alloc(part, stream_);
  launch(copy_to_device(builder_, part_bytes(p.part)), {out(part)});
  collective(whole, {in(part), out(p.storage)});
  builder_.free(part);
}

/// Several parameters in one tensor, by rank and then by parameter: the parts go to their place, and behind the collective every parameter is put together.
void ZeroCoordinator::gather_flat(Gather& gather) {
  std::int64_t part = 0;
  for (const std::size_t i : gather.parameters) part += parameters_[i].part;
  const std::int64_t bytes = part_bytes(part), whole = bytes * spec_.world.ranks();
  const std::string label = parameters_[gather.parameters.front()].name + "+" + std::to_string(gather.parameters.size()) + "." + std::to_string(whole);
  gather.flat = builder_.buffer(label, whole, Owner::all_gather);
  builder_.alloc(gather.flat, stream_);
  if (offloaded()) launch(copy_to_device(builder_, bytes), {inout(gather.flat)});
  else launch(copy_kernel("aten::cat partitions", bytes), {in(partition_), inout(gather.flat)});
  if (spec_.world.ranks() > 1) collective(whole, {inout(gather.flat)});
}

/// The host lets at most so many fetches go on.
void ZeroCoordinator::wait(std::size_t parameter) {
  if (ongoing_.size() > kMaxOngoingFetches) {
    builder_.host_wait(ongoing_.front(), WaitReason::rate_limiter);
    ongoing_.pop_front();
  }
  finish(gathers_[parameters_[parameter].gather]);
  EventId event = 0;
  do event = builder_.event("fetched " + std::to_string(fetches_++));
  while (std::find(ongoing_.begin(), ongoing_.end(), event) != ongoing_.end());
  builder_.record(event, stream_);
  ongoing_.push_back(event);
}

void ZeroCoordinator::finish(Gather& gather) {
  if (gather.finished) return;
  gather.finished = true;
  for (const std::size_t i : gather.parameters) {
    Parameter& p = parameters_[i];
    p.state = State::available;
    if (gather.parameters.size() == 1) continue;
    builder_.alloc(p.storage, stream_);
    launch(copy_kernel("aten::cat parameter", part_bytes(p.part) * spec_.world.ranks()), {in(gather.flat), out(p.storage)});
  }
  if (gather.parameters.size() > 1) builder_.free(gather.flat);
}

// --- release_sub_module ------------------------------------------------------------------------------------------------------------------------------

void ZeroCoordinator::release(Module module) {
  builder_.host_work(hw::HostWork::zero_post_module, modules_[module].count);
  const std::vector<bool> kept = reused_soon();
  for (const std::size_t i : modules_[module].gathered) {
    Parameter& p = parameters_[i];
    --p.active;
    if (!kept[i] && p.state == State::available && p.active == 0) free(i);
  }
}

/// Parameters of the modules that follow within max_reuse_distance along the trace.
std::vector<bool> ZeroCoordinator::reused_soon() const {
  std::vector<bool> soon(parameters_.size());
  std::int64_t passed = 0;
  for (std::size_t i = step_; complete_ && i < trace_.size() && passed < spec_.policy.stage3_max_reuse_distance; ++i) {
    for (const std::size_t p : modules_[trace_[i]].gathered) soon[p] = true;
    passed += modules_[trace_[i]].elements;
  }
  return soon;
}

void ZeroCoordinator::free(std::size_t parameter) {
  Parameter& p = parameters_[parameter];
  if (stream_ != Stream::compute) builder_.record_stream(p.storage, Stream::compute);
  builder_.free(p.storage);
  p.state = State::not_available;
  live_ -= p.elements;
}

void ZeroCoordinator::end_of_pass() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].state == State::inflight) finish(gathers_[parameters_[i].gather]);
    if (parameters_[i].state == State::available) free(i);
    parameters_[i].fetched_for = -1;
  }
  gathers_.clear();
  if (!complete_) {
    for (std::size_t step = 0; step < trace_.size(); ++step) {
      for (const std::size_t p : modules_[trace_[step]].gathered) queue_.push_back({p, static_cast<std::int64_t>(step)});
    }
  }
  complete_ = true;
  queued_ = step_ = 0;
  fetches_ = 0;
}

void ZeroCoordinator::collective(std::int64_t bytes, std::initializer_list<Operand> operands) {
  const CollectiveEntry entry{{hw::CollectiveKind::all_gather, spec_.precision.param, bytes, spec_.world}, Communicator::shard, false, "all_gather parameters"};
  builder_.collective(builder_.collective(entry), stream_, operands);
}

KernelId ZeroCoordinator::copy_kernel(const char* op, std::int64_t bytes) {
  return builder_.kernel({.kind = hw::KernelKind::memory_bound, .memory = hw::MemoryClass::copy, .read_bytes = bytes, .write_bytes = bytes}, op, "copy_kernel");
}

}  // namespace stepcast::program
