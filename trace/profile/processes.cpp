// Test: tests/unit/profile_processes_test.cpp.
#include "trace/profile/processes.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace stepcast::trace::profile {

namespace {

using Owners = std::vector<std::uint32_t>;  // by device: its process, or kNoIndex

/// Process of each thread, by number in the order of their appearance.
std::vector<std::uint32_t> processes_of(const Profile& profile) {
  std::map<std::string_view, std::uint32_t> numbers;
  std::vector<std::uint32_t> processes;
  for (const std::string& thread : profile.threads) {
    const std::string_view process = std::string_view(thread).substr(0, thread.find('/'));
    processes.push_back(numbers.emplace(process, static_cast<std::uint32_t>(numbers.size())).first->second);
  }
  return processes;
}

/// How many operations of each device begin after a call of each process with their number. Files put together from several have the same numbers in all processes.
std::vector<std::map<std::uint32_t, std::int64_t>> launches_by_device(const Profile& profile, const std::vector<std::uint32_t>& processes) {
  std::unordered_map<std::int64_t, std::vector<const HostCall*>> calls;
  for (const HostCall& call : profile.host_calls) {
    if (call.runtime && call.correlation != kNone) calls[call.correlation].push_back(&call);
  }
  std::vector<std::map<std::uint32_t, std::int64_t>> counts(profile.devices.size());
  for (const DeviceOp& op : profile.device_ops) {
    const auto made = calls.find(op.correlation);
    if (op.kind == DeviceKind::other || made == calls.end()) continue;
    for (const HostCall* call : made->second) {
      if (call->begin <= op.begin) ++counts[profile.streams[op.stream].device][processes[call->thread]];
    }
  }
  return counts;
}

/// The process that launched most to a device; of equals one that has no device yet.
Owners owners_of(const Profile& profile, const std::vector<std::uint32_t>& processes) {
  Owners owners;
  for (const auto& counts : launches_by_device(profile, processes)) {
    std::uint32_t owner = kNoIndex;
    std::pair<std::int64_t, bool> best{};
    for (const auto& [process, count] : counts) {
      const std::pair now{count, std::find(owners.begin(), owners.end(), process) == owners.end()};
      if (owner == kNoIndex || now > best) owner = process, best = now;
    }
    owners.push_back(owner);
  }
  return owners;
}

/// The tables that events refer to by number; no events.
Profile empty_like(const Profile& whole) {
  Profile part;
  part.header = whole.header;
  const auto copy = [](const Texts& from, Texts& to) {
    for (std::uint32_t i = 0; i < from.size(); ++i) to.number_of(from[i]);
  };
  copy(whole.names, part.names);
  copy(whole.shapes, part.shapes);
  copy(whole.types, part.types);
  part.devices = whole.devices;
  part.streams = whole.streams;
  part.threads = whole.threads;
  part.collectives = whole.collectives;
  part.traffics = whole.traffics;
  part.whole_microseconds = whole.whole_microseconds;
  return part;
}

class Division {
 public:
  Division(Profile whole, std::vector<std::uint32_t> processes, const Owners& owners) : whole_(std::move(whole)), processes_(std::move(processes)) {
    for (const std::uint32_t owner : owners) {
      if (owner != kNoIndex) part_of_process_.emplace(owner, part_of_process_.size());
      part_of_device_.push_back(owner == kNoIndex ? 0 : part_of_process_.at(owner));
    }
    for (std::size_t i = 0; i < part_of_process_.size(); ++i) parts_.push_back(empty_like(whole_));
  }

  std::vector<Profile> divide() {
    for (const DeviceOp& op : whole_.device_ops) parts_[part_of_device_[whole_.streams[op.stream].device]].device_ops.push_back(op);
    for (const HostCall& call : whole_.host_calls) part_of_thread(call.thread).host_calls.push_back(call);
    for (const HostOp& op : whole_.host_ops) part_of_thread(op.thread).host_ops.push_back(op);
    for (const MemoryEvent& event : whole_.memory) part_of_memory(event).memory.push_back(event);
    for (const HostOp& step : whole_.device_steps) parts_.front().device_steps.push_back(step);
    for (Profile& part : parts_) index_launches(part);
    name_parts();
    return std::move(parts_);
  }

 private:
  Profile& part_of_thread(std::uint32_t thread) {
    const auto part = part_of_process_.find(processes_[thread]);
    return parts_[part == part_of_process_.end() ? 0 : part->second];
  }

  Profile& part_of_memory(const MemoryEvent& event) {
    const auto device = std::find(whole_.devices.begin(), whole_.devices.end(), std::to_string(event.device_id));
    const bool known = event.device_type != 0 && device != whole_.devices.end();
    return parts_[known ? part_of_device_[static_cast<std::size_t>(device - whole_.devices.begin())] : 0];
  }

  static void index_launches(Profile& part) {
    for (std::uint32_t i = 0; i < part.host_calls.size(); ++i) {
      const HostCall& call = part.host_calls[i];
      if (call.runtime && call.correlation != kNone) part.launches.emplace(call.correlation, i);
    }
  }

  void name_parts() {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].label = whole_.label + " (" + std::to_string(i + 1) + " of " + std::to_string(parts_.size()) + " processes)";
      if (parts_[i].header.rank) *parts_[i].header.rank += static_cast<std::int64_t>(i);
    }
    Profile& first = parts_.front();
    first.oddities = std::move(whole_.oddities);
    first.oddities["processes_of_one_file"] = static_cast<std::int64_t>(parts_.size());
    first.events = whole_.events;
    first.python_functions = whole_.python_functions;
    first.call_stacks = whole_.call_stacks;
    first.phases = std::move(whole_.phases);
    first.categories = std::move(whole_.categories);
    first.flows = std::move(whole_.flows);
  }

  Profile whole_;
  const std::vector<std::uint32_t> processes_;            // by thread
  std::map<std::uint32_t, std::size_t> part_of_process_;  // those that own a device
  std::vector<std::size_t> part_of_device_;
  std::vector<Profile> parts_;
};

}  // namespace

std::vector<Profile> by_process(Profile profile) {
  std::vector<std::uint32_t> processes = processes_of(profile);
  const bool several = std::any_of(processes.begin(), processes.end(), [](std::uint32_t process) { return process != 0; });
  const Owners owners = several && profile.devices.size() > 1 ? owners_of(profile, processes) : Owners{};
  std::vector<std::uint32_t> different;
  for (const std::uint32_t owner : owners) {
    if (owner != kNoIndex && std::find(different.begin(), different.end(), owner) == different.end()) different.push_back(owner);
  }
  std::vector<Profile> parts;
  if (different.size() < 2) parts.push_back(std::move(profile));
  else parts = Division(std::move(profile), std::move(processes), owners).divide();
  return parts;
}

}  // namespace stepcast::trace::profile
