// Sets up ranks and groups, runs the event loop, collects the result.
#include "sim/simulate.hpp"

#include <algorithm>
#include <string>

#include "sim/engine.hpp"

namespace stepcast::sim {

Engine::Engine(std::span<const program::Program* const> programs, const PriceList& prices, const Options& options)
    : program_(*programs.front()), prices_(prices), options_(options), variation_(options.variation), recording_(program_, options) {
  const auto recorded_ranks = static_cast<std::size_t>(std::clamp(options.recorded_ranks, 1, options.ranks));
  recorders_.reserve(recorded_ranks);
  buffers_.reserve(program_.buffers.size());
  for (const auto& buffer : program_.buffers) buffers_.push_back({buffer.bytes, buffer.owner});
  ranks_.reserve(static_cast<std::size_t>(options.ranks));
  for (std::int32_t r = 0; r < options.ranks; ++r) {
    const Draws batches(options.variation.seed, Purpose::batch, static_cast<std::uint64_t>(r));
    Rank& rank = ranks_.emplace_back(options.loader, batches, variation_.of_rank(r));
    rank.index = static_cast<std::uint32_t>(r);
    if (rank.index < recorded_ranks) rank.recorder = &recorders_.emplace_back(recording_, rank.index);
    rank.program = programs[static_cast<std::size_t>(r) % programs.size()];
    rank.events.resize(program_.events.size());
    rank.host.pc = rank.program->setup.begin;
    rank.host.end = rank.program->setup.end;
    if (!options.memory_limit) continue;
    rank.memory = std::make_unique<Memory>(options.allocator, options.pool_bytes, rank.streams, program_.buffers.size());
    if (!recorded(rank)) rank.memory->allocator.poll_when_needed();  // nobody looks at its statistics meanwhile: its host can run further ahead
  }
  result_.step_end.resize(program_.steps.size());
  unfinished_ = static_cast<std::uint32_t>(options.ranks);
  make_groups();
  price_slow_kernels();
  threads_ = std::any_of(prices.collectives.begin(), prices.collectives.end(), [](const auto& price) { return price.processor_share > 0; });
}

/// Shard groups (and their parts) are consecutive ranks, replica groups the ranks at equal places in their shard groups. A folded rank is alone in each of its groups.
void Engine::make_groups() {
  const auto ranks = static_cast<std::uint32_t>(ranks_.size());
  std::array<std::uint32_t, program::kCommunicators> size{ranks, 1, 1};
  for (const auto& collective : program_.collectives)
    size[static_cast<std::size_t>(collective.communicator)] = std::min(ranks, static_cast<std::uint32_t>(collective.shape.group.ranks()));
  for (std::size_t c = 0; c < program::kCommunicators; ++c) {
    const std::uint32_t count = std::max(1u, ranks / std::max(1u, size[c]));
    const auto first = static_cast<std::uint32_t>(groups_.size());
    groups_.resize(groups_.size() + count);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const bool consecutive = c != static_cast<std::size_t>(program::Communicator::replica);
      const std::uint32_t g = first + std::min(count - 1, consecutive ? r / std::max(1u, size[c]) : r % count);
      groups_[g].communicator = static_cast<program::Communicator>(c);
      groups_[g].members.push_back(r);
      group_index_[c].push_back(g);
    }
  }
}

Result Engine::run() {
  for (Rank& rank : ranks_) {
    rank.host.state = Host::State::scheduled;
    queue_.push(SimTime{}, EventKind::host, rank.index);
  }
  while (!queue_.empty() && !stopped_) {
    const Event event = queue_.pop();
    now_ = SimTime(event.time());
    ++result_.events;
    handle(event);
  }
  if (!stopped_) describe_deadlock();
  return collect();
}

/// The queue is empty: whoever is not finished waits for something that can't happen.
void Engine::describe_deadlock() {
  for (Rank& rank : ranks_) {
    const std::string who = "rank " + std::to_string(rank.index) + ": ";
    if (rank.host.state != Host::State::finished) {
      const program::Op& op = rank.program->ops[rank.host.pc];
      result_.deadlock.push_back(who + "the host waits in " + program::name(op.kind) + " (op " + std::to_string(rank.host.pc) + ")");
    }
    for (std::size_t s = 0; s < program::kStreams; ++s) {
      Stream& stream = rank.streams[s];
      if (stream.queue.empty()) continue;
      const program::Op& op = rank.program->ops[stream.queue.front().op];
      std::string what = who + "stream " + program::name(static_cast<program::Stream>(s)) + " waits ";
      if (op.kind == program::OpKind::wait) what += "for event " + program_.events[op.id].label;
      else if (op.kind == program::OpKind::collective) what += "in " + program_.collectives[op.id].label + " for the other ranks";
      else what += std::string("at ") + program::name(op.kind);
      result_.deadlock.push_back(what);
    }
  }
  if (!result_.deadlock.empty()) result_.outcome = Outcome::deadlock;
}

Result Engine::collect() {
  for (std::size_t i = 0; i < result_.step_end.size(); ++i) recording_.step_end(static_cast<std::uint32_t>(i), result_.step_end[i]);
  if (const Memory* memory = ranks_.front().memory.get()) {
    result_.memory = memory->allocator.statistics();
    result_.peak_allocated = account_.peak_allocated;
    result_.peak_active = account_.peak_active;
    result_.peak_reserved = account_.peak_reserved;
    result_.peak_by_owner = account_.peak_by_owner;
    auto& retries = result_.retries_per_step;  // so far: the running count at the begin of each step
    for (std::size_t i = 0; i < retries.size(); ++i) retries[i] = (i + 1 < retries.size() ? retries[i + 1] : result_.memory.retries) - retries[i];
  }
  for (const Rank& rank : ranks_) result_.waits.push_back(rank.waits);
  result_.trace = recording_.take();
  return std::move(result_);
}

Result simulate(const program::Program& program, const PriceList& prices, const Options& options) {
  const program::Program* const one[] = {&program};
  return Engine(one, prices, options).run();
}

Result simulate(std::span<const program::Program* const> programs, const PriceList& prices, const Options& options) {
  return Engine(programs, prices, options).run();
}

}  // namespace stepcast::sim
