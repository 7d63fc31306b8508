// What an executor asks of a device: the verbs of a program, with addresses in place of buffers. Drivers: host/ (threads and memory of this machine), cuda/ (GPUs).
// docs/real_backend.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "program/program.hpp"
#include "trace/trace.hpp"

namespace stepcast::real {

/// When a kernel was launched, in the training.
struct Moment {
  std::int32_t step = 0, micro_batch = 0;
};

/// A launch: what it computes, where its parts lie, and its slice of the trace, to which the device adds the times.
struct KernelTask {
  const program::Call* call = nullptr;
  std::vector<std::byte*> parts;
  Moment moment;
  trace::Slice slice;
};

/// `in` and `out` may be one tensor: an all-reduce, or an all-gather around this rank's own part.
struct CollectiveTask {
  const program::CollectiveEntry* entry = nullptr;
  std::byte *in = nullptr, *out = nullptr;
  trace::Slice slice;
};

/// Memory that the allocator has of the device, in the allocator's addresses.
struct Segment {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  auto operator<=>(const Segment&) const = default;
};

/// Streams are FIFOs. All calls come from one thread, the rank's host, but for read and write. Any call throws Stopped once the job has failed.
class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual void launch(program::Stream stream, KernelTask task) = 0;
  /// In the order of issue among those of a communicator.
  virtual void collective(program::Stream stream, CollectiveTask task) = 0;
  virtual void record(std::uint32_t event, program::Stream stream) = 0;
  virtual void wait(program::Stream stream, std::uint32_t event) = 0;
  virtual void host_wait(std::uint32_t event) = 0;
  /// Called on a thread of the device when all that is on the stream by now is done.
  virtual void then(program::Stream stream, std::function<void()> task) = 0;
  virtual void synchronize() = 0;

  /// All that is on the stream by now, and whether that much of it is done.
  virtual std::uint64_t position(program::Stream stream) = 0;
  [[nodiscard]] virtual bool reached(program::Stream stream, std::uint64_t position) const = 0;

  /// From now on the allocator has these segments, in the order of addresses: what is not among them any more is given back. Throws OutOfMemory.
  virtual void map(std::span<const Segment> segments) = 0;
  /// The memory behind an address of the allocator, inside of a segment. Throws std::runtime_error if the device has no more address space.
  virtual std::byte* memory(std::uint64_t address, std::int64_t bytes) = 0;
  /// Copies from and to the device's memory, at once and from any thread: what is written must not be in use, what is read must be done.
  virtual void read(const std::byte* from, std::span<std::byte> to) = 0;
  virtual void write(std::byte* to, std::span<const std::byte> from) = 0;
  /// Memory of the host that copies take without a detour (page-locked); null where there is no such thing. Must go before the device does.
  virtual std::shared_ptr<std::byte> pinned(std::int64_t) { return nullptr; }

  /// Slices of all streams since the last time; the device must be idle.
  virtual std::vector<trace::Slice> take_slices() = 0;
};

/// A request that the pool, or the device itself, has no room for.
struct OutOfMemory final : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The clock of traces: picoseconds since `start`, on which all ranks of a job agree.
class Clock {
 public:
  [[nodiscard]] SimTime now() const;
  Clock();
  /// Before it is used: to agree with another process's.
  void shift(SimTime by) { start_ -= by.count() / 1000; }

 private:
  std::int64_t start_;
};

}  // namespace stepcast::real
