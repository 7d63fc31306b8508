// Appends ops to a program and interns kernels, collectives, buffers, events and marks. Knows nothing of any policy.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "program/program.hpp"

namespace stepcast::program {

using BufferId = std::uint32_t;
using EventId = std::uint32_t;

class Builder {
 public:
  /// Tables. Interning: equal keys give equal ids, so that a name means the same thing in every step.
  std::uint32_t kernel(const hw::KernelShape& shape, std::string_view op, std::string_view kernel_name);
  std::uint32_t collective(const CollectiveEntry& entry);
  BufferId buffer(std::string_view label, std::int64_t bytes, Owner owner);
  EventId event(std::string_view label);

  /// Ops, in the order in which the host makes the calls.
  void launch(std::uint32_t kernel, Stream stream, hw::HostWork work, std::span<const Operand> operands);
  void launch(std::uint32_t kernel, Stream stream, hw::HostWork work, std::initializer_list<Operand> operands) {
    launch(kernel, stream, work, std::span(operands.begin(), operands.size()));
  }
  void collective(std::uint32_t entry, Stream stream, std::initializer_list<Operand> operands);
  void record(EventId event, Stream stream);
  void wait(Stream stream, EventId event);
  void host_wait(EventId event, WaitReason reason);
  void alloc(BufferId buffer, Stream stream);
  void free(BufferId buffer);
  void record_stream(BufferId buffer, Stream stream);
  void host_work(hw::HostWork work, std::uint32_t count = 1);
  void next_batch();
  void mark(MarkKind kind, bool begin, std::int32_t index, std::string_view label);

  [[nodiscard]] std::uint32_t position() const { return static_cast<std::uint32_t>(program_.ops.size()); }
  Program& program() { return program_; }

 private:
  Op& push(OpKind kind, Stream stream, std::uint32_t id);
  Program program_;
  std::unordered_map<std::string, std::uint32_t> kernel_ids_, collective_ids_, buffer_ids_, event_ids_, mark_ids_;
};

inline Operand in(BufferId buffer) { return {buffer, Access::read}; }
inline Operand out(BufferId buffer) { return {buffer, Access::write}; }
inline Operand inout(BufferId buffer) { return {buffer, Access::read_write}; }

}  // namespace stepcast::program
