// One rank of the host driver. docs/real_backend.md; test: tests/unit/host_device_test.cpp.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "real_backend/device.hpp"
#include "real_backend/driver.hpp"
#include "real_backend/host/arena.hpp"
#include "real_backend/host/group.hpp"
#include "real_backend/host/kernels/run.hpp"
#include "real_backend/host/stream.hpp"
#include "trace/interval_sets.hpp"

namespace stepcast::real::host {

class HostDevice final : public Device {
 public:
  /// `common` and `groups` are those of the job and outlive this. `events`: how many the program has.
  HostDevice(const Common& common, Groups& groups, std::int32_t rank, std::size_t events, std::int64_t address_space);
  ~HostDevice() override;

  void launch(program::Stream stream, KernelTask task) override;
  void collective(program::Stream stream, CollectiveTask task) override;
  void record(std::uint32_t event, program::Stream stream) override;
  void wait(program::Stream stream, std::uint32_t event) override;
  void host_wait(std::uint32_t event) override;
  void then(program::Stream stream, std::function<void()> task) override { lane(stream).stream.push(std::move(task)); }
  void synchronize() override;
  std::uint64_t position(program::Stream stream) override { return lane(stream).stream.pushed(); }
  [[nodiscard]] bool reached(program::Stream stream, std::uint64_t position) const override;
  void map(std::span<const Segment> segments) override;
  std::byte* memory(std::uint64_t address, std::int64_t bytes) override { return arena_.at(address, bytes); }
  void read(const std::byte* from, std::span<std::byte> to) override { std::memcpy(to.data(), from, to.size()); }
  void write(std::byte* to, std::span<const std::byte> from) override { std::memcpy(to, from.data(), from.size()); }
  std::vector<trace::Slice> take_slices() override;

 private:
  using Addresses = trace::BasicIntervals<std::uint64_t>;
  struct Lane {
    Lane(Failure& failure, std::string who) : stream(failure, std::move(who)) {}
    kernels::Scratch scratch;
    std::vector<trace::Slice> slices;
    Stream stream;  // last: its thread uses what stands above
  };
  Lane& lane(program::Stream stream);
  void await(std::uint32_t event, std::uint32_t recording);

  Common common_;
  Groups& groups_;
  std::int32_t rank_;
  Arena arena_;
  Addresses mapped_;
  std::vector<std::unique_ptr<Event>> events_;
  std::array<std::uint32_t, program::kCommunicators> issued_{};
  std::array<Counter, program::kCommunicators> turn_{};
  std::array<std::unique_ptr<Lane>, program::kStreams> lanes_;  // made when first used; last, as their threads use the rest
};

}  // namespace stepcast::real::host
