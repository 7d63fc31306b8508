// The device side of a rank: streams in FIFO order, events, kernels that share DRAM, collectives that meet across ranks in the order of their communicator.
#include <algorithm>

#include "sim/engine.hpp"
#include "sim/sharing.hpp"

namespace stepcast::sim {

using program::OpKind;

namespace {

/// An event's target names a stream of a rank: a power of two, so that both come out by shifts.
constexpr std::uint32_t kStreamSlots = 16;
static_assert(program::kStreams <= kStreamSlots);

/// Work left at full speed after running from `updated` to `now`.
SimTime left(SimTime remaining, SimTime updated, SimTime now, double speed) {
  const SimTime elapsed = now - updated;
  if (elapsed == SimTime{}) return remaining;
  const SimTime done = speed == 1.0 ? elapsed : to_sim_time(to_seconds(elapsed) * speed);
  return std::max(remaining - done, SimTime{});
}

SimTime end_time(SimTime now, SimTime remaining, double speed) { return now + (speed == 1.0 ? remaining : to_sim_time(to_seconds(remaining) / speed)); }

}  // namespace

void Engine::handle(const Event& event) {
  const std::uint32_t target = event.target();
  switch (event.kind()) {
    case EventKind::host: run_host(ranks_[target]); return;
    case EventKind::collective_end:
      if (groups_[target].order == event.order()) end_collective(target);
      return;
    case EventKind::kernel_end:
    case EventKind::stream_arrival: break;
  }
  Rank& rank = ranks_[target / kStreamSlots];
  const std::uint32_t s = target % kStreamSlots;
  if (rank.streams[s].order != event.order()) return;
  if (event.kind() == EventKind::kernel_end) {
    end_kernel(rank, s);
  } else {
    rank.streams[s].state = Stream::State::idle;
    rank.dirty |= 1u << s;
  }
  settle(rank);
}

/// Moves every stream whose head may move, until none can; then sees whether the host waited for an idle device.
void Engine::settle(Rank& rank) {
  while (rank.dirty != 0) {
    const auto s = static_cast<std::uint32_t>(__builtin_ctz(rank.dirty));
    rank.dirty &= rank.dirty - 1;
    advance(rank, s);
  }
  if (rank.host.state != Host::State::draining) return;
  for (const Stream& stream : rank.streams)
    if (stream.enqueued != stream.done) return;
  resume(rank);
}

/// Whether the head of one of these streams may be done when the host makes its call.
bool Engine::may_advance(const Rank& rank, std::uint64_t streams) const {
  for (std::uint64_t rest = streams; rest != 0; rest &= rest - 1)
    if (earliest_end(rank, rank.streams[static_cast<std::size_t>(__builtin_ctzll(rest))]) <= rank.host.time) return true;
  return false;
}

/// The head of a stream is not done before this: nothing runs faster than alone.
SimTime Engine::earliest_end(const Rank& rank, const Stream& stream) const {
  switch (stream.state) {
    case Stream::State::running: return stream.updated + stream.remaining;
    case Stream::State::awaiting_arrival: return stream.queue.front().arrival;
    case Stream::State::in_collective: break;
    case Stream::State::idle:
    case Stream::State::blocked_on_event: return now_;
  }
  const std::uint32_t entry = rank.program->ops[stream.queue.front().op].id;
  const Group& group = groups_[group_of(rank, program_.collectives[entry].communicator)];
  if (stream.reached && group.transferring) return group.updated + group.remaining;
  return variation_.on() ? now_ : now_ + prices_.collectives[entry].alone;
}

void Engine::advance(Rank& rank, std::uint32_t s) {
  Stream& stream = rank.streams[s];
  while (stream.state == Stream::State::idle && !stream.queue.empty()) {
    const Item& head = stream.queue.front();
    if (head.turn != kNoTurn && head.turn != rank.turn) return;
    if (head.arrival > now_) {
      stream.state = Stream::State::awaiting_arrival;
      stream.order = queue_.push(head.arrival, EventKind::stream_arrival, rank.index * kStreamSlots + s);
      return;
    }
    const program::Op& op = rank.program->ops[head.op];
    if (op.kind == OpKind::launch) return start_kernel(rank, s);
    if (op.kind == OpKind::collective) {
      stream.state = Stream::State::in_collective;
      rank.in_collective |= 1u << s;
      stream.reached = false;
      return reach_collective(rank, s);
    }
    if (op.kind == OpKind::record) complete_record(rank, op.id);
    if (op.kind == OpKind::wait && rank.events[op.id].completed < head.capture) {
      stream.state = Stream::State::blocked_on_event;
      rank.blocked |= 1u << s;
      return;
    }
    if (op.kind == OpKind::wait) next_turn(rank);
    retire(rank, s);
  }
}

/// One hardware queue: the call at its head has been taken up (a kernel or a collective has started, a wait is over), the one behind it may be. Records hold nobody up.
void Engine::next_turn(Rank& rank) {
  if (!options_.one_queue) return;
  ++rank.turn;
  for (std::uint32_t s = 0; s < program::kStreams; ++s) {
    Stream& stream = rank.streams[s];
    if (!stream.queue.empty() && stream.queue.front().turn == rank.turn) rank.dirty |= 1u << s;
  }
}

void Engine::complete_record(Rank& rank, std::uint32_t event) {
  const std::uint32_t completed = ++rank.events[event].completed;
  for (std::uint32_t left = rank.blocked; left != 0; left &= left - 1) {
    const auto s = static_cast<std::uint32_t>(__builtin_ctz(left));
    Stream& stream = rank.streams[s];
    const Item& head = stream.queue.front();
    if (rank.program->ops[head.op].id != event || head.capture > completed) continue;
    stream.state = Stream::State::idle;
    rank.blocked &= ~(1u << s);
    rank.dirty |= 1u << s;
  }
  Host& host = rank.host;
  if (host.state == Host::State::on_event && host.waits_for == event && completed >= rank.events[event].recorded) resume(rank);
}

/// The head of a stream is done.
void Engine::retire(Rank& rank, std::uint32_t s) {
  rank.streams[s].queue.pop();
  ++rank.streams[s].done;
  if (rank.host.state == Host::State::queue_full && rank.host.waits_for == s) resume(rank);
}

void Engine::start_kernel(Rank& rank, std::uint32_t s) {
  Stream& stream = rank.streams[s];
  stream.state = Stream::State::running;
  rank.running |= 1u << s;
  stream.begin = stream.updated = now_;
  const Item& item = stream.queue.front();
  stream.remaining = prices_.kernels[rank.program->ops[item.op].id].alone;
  if (variation_.on()) stream.remaining = variation_.kernel_time(rank.variation, stream.remaining, item.step, item.op);
  stream.speed = 0;  // so that retiming sets the first end
  next_turn(rank);
  retime(rank);
}

void Engine::end_kernel(Rank& rank, std::uint32_t s) {
  Stream& stream = rank.streams[s];
  const Item& item = stream.queue.front();
  if (recorded(rank)) {
    const program::Op& op = rank.program->ops[item.op];
    recorder(rank).device(op, item, op.stream, stream.begin, now_);
  }
  if (s == static_cast<std::uint32_t>(program::Stream::compute)) result_.step_end[item.step] = std::max(result_.step_end[item.step], now_);
  stream.state = Stream::State::idle;
  rank.running &= ~(1u << s);
  retire(rank, s);
  rank.dirty |= 1u << s;
  retime(rank);
}

std::uint32_t Engine::kernel_at_head(const Rank& rank, std::uint32_t s) { return rank.program->ops[rank.streams[s].queue.front().op].id; }

/// A collective slows a kernel by the kernel's own ratio.
double Engine::lone_speed(const Rank& rank, std::uint32_t s) const { return rank.active_collectives > 0 ? slow_kernels_[kernel_at_head(rank, s)].speed : 1; }

/// The kernel at the head of a stream as a flow that takes its share of the DRAM.
Flow Engine::kernel_flow(const Rank& rank, std::uint32_t s) const {
  const PriceList::Kernel& price = prices_.kernels[kernel_at_head(rank, s)];
  Flow flow;
  flow.limit = lone_speed(rank, s);
  flow.demand[static_cast<std::size_t>(Resource::dram)] = price.dram_share;
  flow.demand[static_cast<std::size_t>(Resource::processors)] = price.processor_share;
  return flow;
}

Flow Engine::collective_flow(const Group& group) const {
  const PriceList::Collective& price = prices_.collectives[group.entry];
  Flow flow;
  flow.demand[static_cast<std::size_t>(Resource::nvlink)] = price.nvlink_share;
  flow.demand[static_cast<std::size_t>(Resource::nic)] = price.nic_share;
  flow.demand[static_cast<std::size_t>(Resource::processors)] = price.processor_share;
  return flow;
}

/// A kernel has begun or ended on the rank: others get other speeds, and where collectives are threads too, so do they.
void Engine::retime(Rank& rank) {
  retime_kernels(rank);
  if (!threads_ || rank.active_collectives == 0) return;
  for (const auto& index : group_index_) {
    if (const Group& group = groups_[index[rank.index]]; group.transferring) return retime_collectives(group);
  }
}

/// Speeds of the running kernels, together no more than the DRAM and the processors give. One alone, the usual case, runs at its limit.
void Engine::retime_kernels(Rank& rank) {
  if (rank.running == 0) return;
  const bool with_threads = threads_ && rank.active_collectives > 0;
  if (!with_threads && (rank.running & (rank.running - 1)) == 0) {
    const auto s = static_cast<std::uint32_t>(__builtin_ctz(rank.running));
    return set_speed(rank, s, lone_speed(rank, s));
  }
  std::array<Flow, program::kStreams + program::kCommunicators> flows;
  std::array<std::uint32_t, program::kStreams> streams{};
  std::size_t count = 0;
  for (std::uint32_t left = rank.running; left != 0; left &= left - 1) {
    streams[count] = static_cast<std::uint32_t>(__builtin_ctz(left));
    flows[count] = kernel_flow(rank, streams[count]);
    ++count;
  }
  std::size_t all = count;
  for (const auto& index : group_index_) {
    if (const Group& group = groups_[index[rank.index]]; with_threads && group.transferring) flows[all++] = collective_flow(group);
  }
  share(std::span(flows).first(all));
  for (std::size_t i = 0; i < count; ++i) set_speed(rank, streams[i], flows[i].speed);
}

void Engine::set_speed(Rank& rank, std::uint32_t s, double speed) {
  Stream& stream = rank.streams[s];
  if (stream.speed == speed) return;
  stream.remaining = left(stream.remaining, stream.updated, now_, stream.speed);
  stream.updated = now_;
  stream.speed = speed;
  stream.order = queue_.push(kernel_end(rank, s), EventKind::kernel_end, rank.index * kStreamSlots + s);
}

void Engine::price_slow_kernels() {
  slow_kernels_.reserve(prices_.kernels.size());
  for (const PriceList::Kernel& price : prices_.kernels) {
    const double speed = 1 / (1 + price.nccl_slowdown);
    slow_kernels_.push_back({speed, end_time(SimTime{}, price.alone, speed)});
  }
}

SimTime Engine::kernel_end(const Rank& rank, std::uint32_t s) const {
  const Stream& stream = rank.streams[s];
  if (stream.speed == 1) return now_ + stream.remaining;
  const std::uint32_t id = kernel_at_head(rank, s);
  const SlowKernel& slow = slow_kernels_[id];
  if (stream.speed == slow.speed && stream.remaining == prices_.kernels[id].alone) return now_ + slow.duration;
  return end_time(now_, stream.remaining, stream.speed);
}

std::uint32_t Engine::group_of(const Rank& rank, program::Communicator communicator) const {
  return group_index_[static_cast<std::size_t>(communicator)][rank.index];
}

/// A collective is at the head of its stream. It joins its group if it is also next in the communicator's FIFO; the last rank to join starts the transfer.
void Engine::reach_collective(Rank& rank, std::uint32_t s) {
  Stream& stream = rank.streams[s];
  const std::uint32_t entry = rank.program->ops[stream.queue.front().op].id;
  const program::Communicator communicator = program_.collectives[entry].communicator;
  if (stream.queue.front().capture != rank.next[static_cast<std::size_t>(communicator)]) return;
  stream.reached = true;
  stream.begin = now_;
  next_turn(rank);
  const std::uint32_t g = group_of(rank, communicator);
  Group& group = groups_[g];
  rank.arrival[static_cast<std::size_t>(communicator)] = now_;
  if (group.arrived == 0) {
    group.entry = entry;
    group.first_arrival = now_;
    group.step = static_cast<std::int32_t>(stream.queue.front().step);
  }
  if (group.entry != entry) return;  // ranks disagree about what comes next: nobody goes on, and the end of the run explains it
  if (++group.arrived == group.members.size()) start_collective(g);
}

void Engine::start_collective(std::uint32_t g) {
  Group& group = groups_[g];
  group.transferring = true;
  group.updated = now_;
  group.remaining = transfer_time(group);
  if (group.first_arrival < now_ && group.step >= options_.record_from_step) count_waits(group);
  group.speed = 0;
  for (const std::uint32_t member : group.members) {
    ++ranks_[member].active_collectives;
    retime_kernels(ranks_[member]);
  }
  retime_collectives(group);
}

SimTime Engine::transfer_time(const Group& group) const {
  const PriceList::Collective& price = prices_.collectives[group.entry];
  if (!variation_.on()) return price.alone;
  Factor slowest = kOne;
  if (price.nic_share > 0)
    for (const std::uint32_t member : group.members) slowest = std::max(slowest, ranks_[member].variation.network_factor);
  const auto communicator = static_cast<std::uint32_t>(group.communicator);
  const std::uint32_t first = group.members.front();
  return variation_.collective_time(price.alone, slowest, first * static_cast<std::uint32_t>(program::kCommunicators) + communicator,
                                    ranks_[first].next[communicator]);
}

/// Who waited for whom, now that the last rank has arrived.
void Engine::count_waits(const Group& group) {
  for (const std::uint32_t member : group.members) {
    Rank& rank = ranks_[member];
    const SimTime waited = now_ - rank.arrival[static_cast<std::size_t>(group.communicator)];
    ++rank.waits.joined;
    if (waited == SimTime{}) ++rank.waits.last;
    rank.waits.waited += waited;
  }
}

void Engine::end_collective(std::uint32_t g) {
  Group& group = groups_[g];
  group.transferring = false;
  group.arrived = 0;
  for (const std::uint32_t member : group.members) end_collective_on(ranks_[member], group);
  retime_collectives(group);
  for (const std::uint32_t member : group.members) settle(ranks_[member]);
}

void Engine::end_collective_on(Rank& rank, const Group& group) {
  --rank.active_collectives;
  ++rank.next[static_cast<std::size_t>(group.communicator)];
  for (std::uint32_t left = rank.in_collective; left != 0; left &= left - 1) {
    const auto s = static_cast<std::uint32_t>(__builtin_ctz(left));
    Stream& stream = rank.streams[s];
    const Item item = stream.queue.front();
    const program::Op& op = rank.program->ops[item.op];
    if (program_.collectives[op.id].communicator != group.communicator) continue;
    stream.state = Stream::State::idle;  // finished, or behind the finished one in the FIFO: looked at again
    rank.in_collective &= ~(1u << s);
    rank.dirty |= 1u << s;
    if (!stream.reached) continue;
    if (recorded(rank)) recorder(rank).device(op, item, op.stream, stream.begin, now_);
    retire(rank, s);
  }
  retime_kernels(rank);
}

/// Speeds of the collectives that share a rank's links with `changed`. One spans several ranks and runs at the speed of its slowest.
void Engine::retime_collectives(const Group& changed) {
  ++retime_stamp_;
  for (const std::uint32_t member : changed.members) {
    for (const auto& index : group_index_) {
      Group& group = groups_[index[member]];
      if (!group.transferring || group.retimed == retime_stamp_) continue;
      group.retimed = retime_stamp_;
      double speed = 1;
      for (const std::uint32_t other : group.members) speed = std::min(speed, collective_speed(ranks_[other], index[member]));
      set_group_speed(index[member], speed);
    }
  }
}

double Engine::collective_speed(const Rank& rank, std::uint32_t g) const {
  const std::uint32_t kernels = threads_ ? rank.running : 0;
  if (rank.active_collectives <= 1 && kernels == 0) return 1;
  std::array<Flow, program::kStreams + program::kCommunicators> flows;
  std::size_t count = 0, mine = 0;
  for (const auto& index : group_index_) {
    const Group& group = groups_[index[rank.index]];
    if (!group.transferring) continue;
    if (index[rank.index] == g) mine = count;
    flows[count++] = collective_flow(group);
  }
  for (std::uint32_t left = kernels; left != 0; left &= left - 1) flows[count++] = kernel_flow(rank, static_cast<std::uint32_t>(__builtin_ctz(left)));
  share(std::span(flows).first(count));
  return flows[mine].speed;
}

void Engine::set_group_speed(std::uint32_t g, double speed) {
  Group& group = groups_[g];
  if (group.speed == speed) return;
  group.remaining = left(group.remaining, group.updated, now_, group.speed);
  group.updated = now_;
  group.speed = speed;
  group.order = queue_.push(end_time(now_, group.remaining, speed), EventKind::collective_end, g);
}

}  // namespace stepcast::sim
