// The host thread of a rank: makes the program's calls in order, spends their host time, and blocks only where the program or the allocator says so.
// It may run ahead of the event clock as long as a call does not look at the device (docs/models.md, "Execution").
#include <algorithm>
#include <utility>

#include "sim/engine.hpp"

namespace stepcast::sim {

using program::Op;
using program::OpKind;

void Engine::run_host(Rank& rank) {
  Host& host = rank.host;
  host.state = Host::State::running;
  while (!stopped_) {
    if (host.pc == host.end && !next_range(rank)) return;
    const Op& op = rank.program->ops[host.pc];
    if (!host.paid) {
      if (variation_.on()) pause(rank);
      const SimTime begin = host.time;
      host.time += variation_.on() ? host_cost(rank, op) : host_price(prices_, op);
      host.paid = true;
      if (op.kind == OpKind::host_work && recorded(rank)) recorder(rank).host_work(op, begin, host.time);
    }
    if (const std::uint64_t streams = looks_at(rank, op); streams != 0 && !reach_now(rank, streams)) return;
    ++result_.events;
    if (!execute(rank, op)) return;
    host.paid = host.drained = false;
    ++host.pc;
  }
}

/// Goes on to the next step's ops; false when there is none.
bool Engine::next_range(Rank& rank) {
  Host& host = rank.host;
  if (recorded(rank) && host.step >= 0) recorder(rank).leave_step(host.time);
  const auto next = static_cast<std::size_t>(std::int64_t{host.step} + 1);
  if (next == rank.program->steps.size()) {
    host.state = Host::State::finished;
    --unfinished_;
    return false;
  }
  if (rank.memory && first(rank)) result_.retries_per_step.push_back(rank.memory->allocator.statistics().retries);
  host.pc = rank.program->steps[next].begin;
  host.end = rank.program->steps[next].end;
  host.step = static_cast<std::int32_t>(next);
  if (next == 1 && rank.program->steps.size() > 2) rank.loader.drop_stock(host.time);  // what the first step, the longest, has let pile up
  if (recorded(rank)) recorder(rank).enter_step(host.step, host.time);
  return host.pc != host.end || next_range(rank);
}

/// The same whenever it is asked for one op of one step.
SimTime Engine::host_cost(const Rank& rank, const Op& op) const {
  const SimTime listed = host_price(prices_, op);
  const Host& host = rank.host;
  return variation_.on() ? variation_.host_time(rank.variation, listed, static_cast<std::uint32_t>(std::max(host.step, 0)), host.pc) : listed;
}

/// The thread does nothing for a while: a collection of garbage, or the operating system has taken the processor away.
void Engine::pause(Rank& rank) {
  const SimTime begin = rank.host.time;
  rank.host.time += variation_.pause(rank.variation, begin);
  if (recorded(rank)) recorder(rank).host_wait(trace::HostState::paused, begin, rank.host.time);
}

/// Most calls only put work on a queue. Those that look at the device, at the progress of these streams, must happen at their own time, not before.
std::uint64_t Engine::looks_at(const Rank& rank, const Op& op) const {
  switch (op.kind) {
    case OpKind::host_wait: return kAllStreams;
    case OpKind::alloc: return rank.memory ? rank.memory->allocator.polls(buffers_[op.id].bytes, static_cast<int>(op.stream)) : 0;
    case OpKind::launch:
    case OpKind::collective: {
      const Stream& stream = rank.streams[static_cast<std::size_t>(op.stream)];
      return stream.enqueued - stream.done >= static_cast<std::uint32_t>(options_.launch_queue_depth) ? kAllStreams : 0;
    }
    default: return 0;
  }
}

/// Brings the event clock to the host's time: at once if nothing happens before, else by an event. False: the host continues later. The clock may stay behind if
/// none of these streams can advance by then.
bool Engine::reach_now(Rank& rank, std::uint64_t streams) {
  Host& host = rank.host;
  if (host.time == now_) return true;
  if (queue_.idle_until(host.time)) {
    now_ = host.time;
    return true;
  }
  if (streams != kAllStreams && !may_advance(rank, streams)) return true;
  host.state = Host::State::scheduled;
  queue_.push(host.time, EventKind::host, rank.index);
  return false;
}

void Engine::block(Rank& rank, Host::State state, trace::HostState reason, std::uint32_t waits_for) {
  rank.host.state = state;
  rank.host.reason = reason;
  rank.host.waits_for = waits_for;
  rank.host.wait_begin = rank.host.time;
}

/// The device did what the host waited for.
void Engine::resume(Rank& rank) {
  Host& host = rank.host;
  if (host.state == Host::State::draining) host.drained = true;
  host.state = Host::State::scheduled;
  host.time = now_;
  if (recorded(rank)) recorder(rank).host_wait(host.reason, host.wait_begin, now_);
  queue_.push(now_, EventKind::host, rank.index);
}

/// The effect of one call at the host's time. False: the host blocks and the call is taken up again later.
bool Engine::execute(Rank& rank, const Op& op) {
  switch (op.kind) {
    case OpKind::launch:
    case OpKind::collective:
    case OpKind::record:
    case OpKind::wait: return enqueue(rank, op);
    case OpKind::host_wait: return host_wait(rank, op);
    case OpKind::alloc: return !rank.memory || allocate(rank, op);
    case OpKind::free:
      if (rank.memory) release(rank, op);
      return true;
    case OpKind::record_stream:
      if (rank.memory) rank.memory->allocator.record_stream(rank.memory->blocks[op.id], static_cast<int>(op.stream));
      return true;
    case OpKind::next_batch: take_batch(rank); return true;
    case OpKind::mark:
      if (recorded(rank)) recorder(rank).mark(program_.marks[op.id], rank.host.time);
      return true;
    case OpKind::host_work: return true;
  }
  return true;
}

bool Engine::host_wait(Rank& rank, const Op& op) {
  const EventSlot& event = rank.events[op.id];
  if (event.completed >= event.recorded) return true;
  const bool limiter = op.count == static_cast<std::uint32_t>(program::WaitReason::rate_limiter);
  block(rank, Host::State::on_event, limiter ? trace::HostState::rate_limiter : trace::HostState::synchronize, op.id);
  return false;
}

bool Engine::enqueue(Rank& rank, const Op& op) {
  const auto s = static_cast<std::uint32_t>(op.stream);
  Stream& stream = rank.streams[s];
  Host& host = rank.host;
  const bool call = op.kind == OpKind::launch || op.kind == OpKind::collective;
  if (call && stream.enqueued - stream.done >= static_cast<std::uint32_t>(options_.launch_queue_depth)) {
    block(rank, Host::State::queue_full, trace::HostState::launch_queue_full, s);
    return false;
  }
  Item& item = stream.queue.push();
  item.op = host.pc;
  item.step = static_cast<std::uint32_t>(std::max(host.step, 0));
  item.arrival = host.time + prices_.launch_latency;
  if (options_.one_queue && op.kind != OpKind::record) item.turn = rank.turns++;
  if (op.kind == OpKind::record) item.capture = ++rank.events[op.id].recorded;
  if (op.kind == OpKind::wait) item.capture = rank.events[op.id].recorded;
  if (op.kind == OpKind::collective) item.capture = rank.issued[static_cast<std::size_t>(program_.collectives[op.id].communicator)]++;
  if (recorded(rank)) {
    item.context = recorder(rank).context();
    if (call)
      item.correlation =
          recorder(rank).host_call(op, host.time - host_cost(rank, op), host.time, prices_.host[static_cast<std::size_t>(hw::HostWork::extra_launch)]);
  }
  ++stream.enqueued;
  if (stream.state == Stream::State::idle) {
    rank.dirty |= 1u << s;
    settle(rank);
  }
  return true;
}

bool Engine::allocate(Rank& rank, const Op& op) {
  Memory& memory = *rank.memory;
  const std::int64_t bytes = buffers_[op.id].bytes;
  const int stream = static_cast<int>(op.stream);
  if (memory.blocks[op.id] != memory::kNoBlock) return true;  // handed out before the host waited for the device
  const memory::Outcome outcome = rank.host.drained ? memory.allocator.malloc_after_drain(bytes, stream) : memory.allocator.malloc(bytes, stream);
  if (outcome.kind == memory::Outcome::Kind::must_drain) {
    if (!reach_now(rank)) return false;
    block(rank, Host::State::draining, trace::HostState::allocator_flush, 0);
    settle(rank);
    return false;
  }
  if (outcome.kind == memory::Outcome::Kind::out_of_memory) {
    run_out_of_memory(rank, op, outcome);
    return false;
  }
  memory.blocks[op.id] = outcome.block;
  if (recorded(rank)) account(rank, op.id, outcome);
  return charge_allocation(rank, outcome);
}

/// Host time of the device calls that a request took. The cost of a retry comes on top of draining the device; a plain cudaFree waits for the device too.
bool Engine::charge_allocation(Rank& rank, const memory::Outcome& outcome) {
  if (outcome.device_mallocs + outcome.device_frees == 0 && !rank.host.drained) return true;
  Host& host = rank.host;
  const SimTime begin = host.time;
  constexpr std::int64_t kMiB = 1 << 20;
  host.time += prices_.device_malloc * outcome.device_mallocs + prices_.device_malloc_per_gib * (outcome.segment_bytes / kMiB) / 1024;
  host.time += prices_.device_free * outcome.device_frees;
  if (host.drained) host.time += prices_.flush;
  if (recorded(rank)) recorder(rank).host_wait(host.drained ? trace::HostState::allocator_flush : trace::HostState::device_malloc, begin, host.time);
  if (host.drained || outcome.device_frees == 0) return true;
  if (!reach_now(rank)) return false;
  block(rank, Host::State::draining, trace::HostState::device_malloc, 0);
  settle(rank);
  return false;
}

void Engine::release(Rank& rank, const Op& op) {
  const memory::BlockId block = std::exchange(rank.memory->blocks[op.id], memory::kNoBlock);
  memory::CachingAllocator& allocator = rank.memory->allocator;
  if (!recorded(rank)) return allocator.free(block);
  const std::int64_t bytes = allocator.size(block);
  const std::uint64_t address = allocator.address(block);
  allocator.free(block);
  if (first(rank)) account_.add(buffers_[op.id].owner, -bytes);
  recorder(rank).memory(rank.host.time, -bytes, address, buffers_[op.id].owner, allocator.statistics());
}

void Engine::account(const Rank& rank, std::uint32_t buffer, const memory::Outcome& taken) {
  const memory::CachingAllocator& allocator = rank.memory->allocator;
  if (first(rank)) {
    account_.add(buffers_[buffer].owner, taken.bytes);
    account_.look(allocator.statistics());
  }
  recorder(rank).memory(rank.host.time, taken.bytes, allocator.address(taken.block), buffers_[buffer].owner, allocator.statistics());
}

BytesByOwner Engine::held_by_owner(const Memory& memory) const {
  BytesByOwner held{};
  for (std::size_t i = 0; i < buffers_.size(); ++i) held[static_cast<std::size_t>(buffers_[i].owner)] += memory.allocator.size(memory.blocks[i]);
  return held;
}

void Engine::take_batch(Rank& rank) {
  const SimTime asked = rank.host.time;
  rank.host.time = rank.loader.next(asked);
  if (recorded(rank)) recorder(rank).host_wait(trace::HostState::data_loader, asked, rank.host.time);
}

void Engine::run_out_of_memory(const Rank& rank, const Op& op, const memory::Outcome& outcome) {
  const auto& statistics = rank.memory->allocator.statistics();
  const double fraction = options_.allocator.memory_fraction.value_or(1);
  const auto limit = static_cast<std::int64_t>(fraction * static_cast<double>(options_.pool_bytes));
  result_.outcome = Outcome::out_of_memory;
  result_.out_of_memory = {program_.buffers[op.id].label, rank.host.time, program_.buffers[op.id].bytes, outcome.segment_bytes, statistics.allocated,
                           statistics.reserved,           limit,          std::max(rank.host.step, 0),   statistics.active,     held_by_owner(*rank.memory)};
  stopped_ = true;
}

}  // namespace stepcast::sim
