// See device.hpp.
#include "real_backend/host/device.hpp"

#include <utility>

namespace stepcast::real::host {

HostDevice::HostDevice(const Common& common, Groups& groups, std::int32_t rank, std::size_t events, std::int64_t address_space)
    : common_(common), groups_(groups), rank_(rank), arena_(address_space) {
  for (std::size_t i = 0; i < events; ++i) {
    events_.push_back(std::make_unique<Event>());
    common_.failure.watch(events_.back()->completed);
  }
  for (Counter& turn : turn_) common_.failure.watch(turn);
}

HostDevice::~HostDevice() {
  for (auto& lane : lanes_) lane.reset();
  for (const auto& event : events_) common_.failure.forget(event->completed);
  for (Counter& turn : turn_) common_.failure.forget(turn);
  if (common_.failure.raised() && groups_.outlive_failures()) arena_.leave();
}

void HostDevice::map(std::span<const Segment> segments) {
  Addresses wanted;
  for (const Segment& segment : segments) wanted.push_back({segment.address, segment.address + static_cast<std::uint64_t>(segment.bytes)});
  wanted = trace::interval_sets::merge(std::move(wanted));
  for (const auto& [begin, end] : trace::interval_sets::subtract(mapped_, wanted)) arena_.release(begin, static_cast<std::int64_t>(end - begin));
  for (const auto& [begin, end] : trace::interval_sets::subtract(wanted, mapped_)) arena_.populate(begin, static_cast<std::int64_t>(end - begin));
  mapped_ = std::move(wanted);
}

HostDevice::Lane& HostDevice::lane(program::Stream stream) {
  auto& lane = lanes_[static_cast<std::size_t>(stream)];
  if (!lane) lane = std::make_unique<Lane>(common_.failure, "rank " + std::to_string(rank_) + ", stream " + program::name(stream));
  return *lane;
}

void HostDevice::launch(program::Stream stream, KernelTask task) {
  Lane& own = lane(stream);
  own.stream.push([this, &own, task = std::move(task)]() mutable {
    task.slice.begin = common_.clock.now();
    kernels::run(*task.call, task.parts, {common_.training, task.moment, rank_}, own.scratch);
    task.slice.end = common_.clock.now();
    own.slices.push_back(task.slice);
    common_.progress.fetch_add(1, std::memory_order_relaxed);
  });
}

/// The slice begins when the last rank has arrived; the wait before it is the stream's.
void HostDevice::collective(program::Stream stream, CollectiveTask task) {
  Lane& own = lane(stream);
  const auto communicator = static_cast<std::size_t>(task.entry->communicator);
  const std::uint32_t number = issued_[communicator]++;
  own.stream.push([this, &own, task, communicator, number]() mutable {
    const program::CollectiveEntry& entry = *task.entry;
    common_.failure.await(turn_[communicator], [&](std::uint32_t turn) { return turn == number; });
    const auto [group, member] = groups_.of(entry.communicator, entry.shape.group.ranks(), rank_);
    group->run(entry, number, member, task.in, task.out, [&] { task.slice.begin = common_.clock.now(); });
    task.slice.end = common_.clock.now();
    own.slices.push_back(task.slice);
    common_.progress.fetch_add(1, std::memory_order_relaxed);
    advance(turn_[communicator]);
  });
}

void HostDevice::record(std::uint32_t event, program::Stream stream) {
  Event& recorded = *events_[event];
  lane(stream).stream.push([&recorded, number = ++recorded.recorded] {
    recorded.completed.store(number, std::memory_order_release);
    recorded.completed.notify_all();
  });
}

void HostDevice::await(std::uint32_t event, std::uint32_t recording) {
  common_.failure.await(events_[event]->completed, [&](std::uint32_t completed) { return completed - recording < (std::uint32_t{1} << 31); });
}

void HostDevice::wait(program::Stream stream, std::uint32_t event) {
  lane(stream).stream.push([this, event, recording = events_[event]->recorded] { await(event, recording); });
}

void HostDevice::host_wait(std::uint32_t event) { await(event, events_[event]->recorded); }

void HostDevice::synchronize() {
  for (const auto& lane : lanes_) {
    if (lane) lane->stream.drain();
  }
}

bool HostDevice::reached(program::Stream stream, std::uint64_t position) const {
  const auto& lane = lanes_[static_cast<std::size_t>(stream)];
  return !lane || lane->stream.reached(static_cast<std::uint32_t>(position));
}

std::vector<trace::Slice> HostDevice::take_slices() {
  std::vector<trace::Slice> result;
  for (const auto& lane : lanes_) {
    if (!lane) continue;
    result.insert(result.end(), lane->slices.begin(), lane->slices.end());
    lane->slices.clear();
  }
  return result;
}

}  // namespace stepcast::real::host
