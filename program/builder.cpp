// Interning tables and the appending of ops. The tables keep ids only; the labels live once, in the program.
#include "program/builder.hpp"

#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

namespace stepcast::program {
namespace {

std::size_t hash_of(std::string_view label) { return std::hash<std::string_view>{}(label); }

void mix(std::size_t& seed, std::int64_t value) { seed ^= std::hash<std::int64_t>{}(value) + 0x9e3779b97f4a7c15U + (seed << 6) + (seed >> 2); }

/// Returns the id of the table entry for which `same(entry)` holds, or appends `make()`.
template <typename Table, typename Same, typename Make>
std::uint32_t intern(IdIndex& index, Table& table, std::size_t hash, Same same, Make make) {
  const auto fresh = static_cast<std::uint32_t>(table.size());
  const std::uint32_t id = index.find_or_add(hash, fresh, [&](std::uint32_t known) { return same(table[known]); });
  if (id == fresh) table.push_back(make());
  return id;
}

}  // namespace

KernelId Builder::kernel(const hw::KernelShape& shape, std::string_view op, std::string_view kernel_name) {
  std::size_t hash = hash_of(op);
  for (const std::int64_t value : {shape.batch, shape.m, shape.n, shape.k, shape.read_bytes, shape.write_bytes}) mix(hash, value);
  return intern(
      kernels_, program_.kernels, hash, [&](const KernelEntry& e) { return e.shape == shape && e.op == op && e.kernel == kernel_name; },
      [&] {
        return KernelEntry{shape, std::string(op), std::string(kernel_name)};
      });
}

std::uint32_t Builder::collective(const CollectiveEntry& entry) {
  return intern(
      collectives_, program_.collectives, hash_of(entry.label),
      [&](const CollectiveEntry& e) {
        return e.shape == entry.shape && e.communicator == entry.communicator && e.root_unit == entry.root_unit && e.label == entry.label &&
               e.average == entry.average;
      },
      [&] { return entry; });
}

BufferId Builder::buffer(std::string_view label, std::int64_t bytes, Owner owner) {
  const BufferId id = intern(
      buffers_, program_.buffers, hash_of(label), [&](const BufferEntry& e) { return e.label == label; },
      [&] {
        return BufferEntry{bytes, owner, std::string(label)};
      });
  const BufferEntry& entry = program_.buffers[id];
  if (entry.bytes != bytes || entry.owner != owner) throw std::logic_error("buffer '" + std::string(label) + "' named twice with different sizes or owners");
  return id;
}

EventId Builder::event(std::string_view label) {
  return intern(
      events_, program_.events, hash_of(label), [&](const EventEntry& e) { return e.label == label; }, [&] { return EventEntry{std::string(label)}; });
}

MarkId Builder::mark(MarkKind kind, bool begin, std::int32_t index, std::string_view label) {
  return intern(
      marks_, program_.marks, hash_of(label), [&](const MarkEntry& e) { return e.kind == kind && e.begin == begin && e.index == index && e.label == label; },
      [&] {
        return MarkEntry{kind, begin, index, std::string(label)};
      });
}

void Builder::launch(KernelId kernel, Stream stream, hw::HostWork work, std::span<const Operand> operands) {
  if (operands.size() > std::numeric_limits<std::uint16_t>::max()) throw std::length_error("a kernel with more than 65535 operands");
  Op& op = push(OpKind::launch, stream, kernel, work);
  op.operand_count = static_cast<std::uint16_t>(operands.size());
  op.operands = static_cast<std::uint32_t>(program_.operands.size());
  program_.operands.insert(program_.operands.end(), operands.begin(), operands.end());
}

void Builder::collective(std::uint32_t entry, Stream stream, std::initializer_list<Operand> operands) {
  launch(entry, stream, hw::HostWork::collective_call, std::span(operands.begin(), operands.size()));
  program_.ops.back().kind = OpKind::collective;
}

void Builder::record(EventId event, Stream stream) { push(OpKind::record, stream, event); }

void Builder::wait(Stream stream, EventId event) { push(OpKind::wait, stream, event); }

void Builder::host_wait(EventId event, WaitReason reason) { push(OpKind::host_wait, Stream::compute, event).count = static_cast<std::uint32_t>(reason); }

void Builder::alloc(BufferId buffer, Stream stream) {
  if (detail_ == Detail::full) push(OpKind::alloc, stream, buffer);
}

void Builder::free(BufferId buffer) {
  if (detail_ == Detail::full) push(OpKind::free, Stream::compute, buffer);
}

void Builder::record_stream(BufferId buffer, Stream stream) {
  if (detail_ == Detail::full) push(OpKind::record_stream, stream, buffer);
}

void Builder::host_work(hw::HostWork work, std::uint32_t count) {
  if (detail_ == Detail::full && count > 0) push(OpKind::host_work, Stream::compute, 0, work).count = count;
}

void Builder::next_batch() {
  if (detail_ == Detail::full) push(OpKind::next_batch, Stream::compute, 0);
}

}  // namespace stepcast::program
