// Appends ops to a program and interns kernels, collectives, buffers, events and marks. Knows nothing of any policy.
// Interning costs a hash of the label and is meant for set-up; appending an op costs a few nanoseconds and takes ids only.
// Test: tests/unit/builder_test.cpp.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "program/id_index.hpp"
#include "program/program.hpp"

namespace stepcast::program {

using KernelId = std::uint32_t;
using BufferId = std::uint32_t;
using EventId = std::uint32_t;
using MarkId = std::uint32_t;

/// `full`: everything that the host does. `schedule`: fixed-cost mode, where only launches and collectives cost host time and no memory is modelled:
/// alloc, free, record_stream, host_work and next_batch add nothing.
enum class Detail : std::uint8_t { full, schedule };

class Builder {
 public:
  /// `executable`: launches carry their calls.
  explicit Builder(Detail detail = Detail::full, bool executable = false) : detail_(detail), executable_(executable) {}

  /// Tables. Interning: equal keys give equal ids, so that a name means the same thing in every step.
  KernelId kernel(const hw::KernelShape& shape, std::string_view op, std::string_view kernel_name);
  std::uint32_t collective(const CollectiveEntry& entry);
  /// Throws std::logic_error if the label is known with another size or owner.
  BufferId buffer(std::string_view label, std::int64_t bytes, Owner owner);
  EventId event(std::string_view label);
  MarkId mark(MarkKind kind, bool begin, std::int32_t index, std::string_view label);

  /// Ops, in the order in which the host makes the calls. Executors price records, waits, collectives, allocs and frees by their kind, launches and host work by `work`.
  void launch(KernelId kernel, Stream stream, hw::HostWork work, std::span<const Operand> operands);
  void launch(KernelId kernel, Stream stream, hw::HostWork work, std::initializer_list<Operand> operands) {
    launch(kernel, stream, work, std::span(operands.begin(), operands.size()));
  }
  /// What the launch made last computes; `make` is asked for the call only where the program is to be run for real.
  template <class Make>
  void computes(Make make) {
    if (!executable_) return;
    program_.calls.push_back(make());
    program_.ops.back().count = static_cast<std::uint32_t>(program_.calls.size());
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
  void mark(MarkId id) { push(OpKind::mark, Stream::compute, id); }
  void mark_new(MarkKind kind, bool begin, std::int32_t index, std::string_view label) { mark(mark(kind, begin, index, label)); }

  [[nodiscard]] Detail detail() const { return detail_; }
  [[nodiscard]] bool executable() const { return executable_; }
  [[nodiscard]] std::uint32_t position() const { return static_cast<std::uint32_t>(program_.ops.size()); }
  /// Room for this many ops and operands in all, where a caller can tell.
  void reserve(std::size_t ops, std::size_t operands) {
    program_.ops.reserve(ops);
    program_.operands.reserve(operands);
  }
  [[nodiscard]] Program& program() { return program_; }
  [[nodiscard]] const Program& program() const { return program_; }

 private:
  Op& push(OpKind kind, Stream stream, std::uint32_t id, hw::HostWork work = hw::HostWork::none) {
    // In place: written byte by byte and copied at once, it would wait for the bytes to leave the store buffer.
    Op& op = program_.ops.emplace_back();
    op.kind = kind;
    op.stream = stream;
    op.work = work;
    op.id = id;
    return op;
  }

  Detail detail_;
  bool executable_;
  Program program_;
  IdIndex kernels_, collectives_, buffers_, events_, marks_;
};

inline Operand in(BufferId buffer) { return {buffer, Access::read}; }
inline Operand out(BufferId buffer) { return {buffer, Access::write}; }
inline Operand inout(BufferId buffer) { return {buffer, Access::read_write}; }

inline Part part(BufferId buffer, hw::Dtype dtype, std::int64_t count, std::int64_t begin = 0) { return {buffer, dtype, begin, count}; }
inline Call copy_call(const Part& from, const Part& to, double factor = 1) { return {Function::copy, {from, to}, {.factor = factor}}; }
inline Call add_call(const Part& into, const Part& from) { return {Function::add, {into, from}, {}}; }
inline Call scale_call(const Part& x, double factor) { return {Function::scale, {x}, {.factor = factor}}; }
inline Call zero_call(const Part& x) { return {Function::zero, {x}, {}}; }

}  // namespace stepcast::program
