// A program built by hand, op by op, with names for ids: for tests of executors that must not depend on the program builder.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "program/program.hpp"

namespace stepcast::test {

class SmallProgram {
 public:
  using Stream = program::Stream;
  using Uses = std::vector<std::pair<std::string, program::Access>>;
  program::Program program;

  SmallProgram& launch(const std::string& op, Stream stream, const Uses& uses, const hw::KernelShape& shape = {},
                       hw::HostWork work = hw::HostWork::op_forward) {
    program.kernels.push_back({shape, op, op + "_kernel"});
    push(program::OpKind::launch, stream, program.kernels.size() - 1, uses).work = work;
    return *this;
  }
  SmallProgram& collective(const std::string& label, hw::CollectiveKind kind, program::Communicator communicator, Stream stream, const Uses& uses,
                           std::int64_t bytes = 1024, hw::GroupShape group = {8, 4}) {
    program.collectives.push_back({{kind, hw::Dtype::bf16, bytes, group}, communicator, false, label});
    push(program::OpKind::collective, stream, program.collectives.size() - 1, uses);
    return *this;
  }
  SmallProgram& gather(Stream stream, const Uses& uses) {
    return collective("all_gather", hw::CollectiveKind::all_gather, program::Communicator::shard, stream, uses);
  }
  SmallProgram& reduce(Stream stream, const Uses& uses) {
    return collective("reduce_scatter", hw::CollectiveKind::reduce_scatter, program::Communicator::shard, stream, uses);
  }
  SmallProgram& record(const std::string& event, Stream stream) { return push(program::OpKind::record, stream, event_id(event)), *this; }
  SmallProgram& wait(Stream stream, const std::string& event) { return push(program::OpKind::wait, stream, event_id(event)), *this; }
  SmallProgram& host_wait(const std::string& event) { return push(program::OpKind::host_wait, Stream::compute, event_id(event)), *this; }
  /// `waiter` waits for the tail of `stream`.
  SmallProgram& sync(Stream stream, Stream waiter, const std::string& event) { return record(event, stream).wait(waiter, event); }
  SmallProgram& alloc(const std::string& buffer, Stream stream) { return push(program::OpKind::alloc, stream, buffer_id(buffer)), *this; }
  SmallProgram& free(const std::string& buffer) { return push(program::OpKind::free, Stream::compute, buffer_id(buffer)), *this; }
  SmallProgram& record_stream(const std::string& buffer, Stream stream) { return push(program::OpKind::record_stream, stream, buffer_id(buffer)), *this; }
  SmallProgram& mark(program::MarkKind kind, bool begin, const std::string& label) {
    program.marks.push_back({kind, begin, 0, label});
    return push(program::OpKind::mark, Stream::compute, program.marks.size() - 1), *this;
  }
  SmallProgram& unit_begin(const std::string& label) { return mark(program::MarkKind::unit, true, label); }
  SmallProgram& unit_end(const std::string& label) { return mark(program::MarkKind::unit, false, label); }

  SmallProgram& end_setup() {
    program.setup = {0, here()};
    return *this;
  }
  SmallProgram& end_step() {
    const std::uint32_t begin = program.steps.empty() ? program.setup.end : program.steps.back().end;
    program.steps.push_back({begin, here()});
    return *this;
  }
  SmallProgram& repeat(std::size_t steps) {
    program.steps.resize(steps, program.steps.back());
    return *this;
  }

  /// A copy in which the ops of this kind on this event have become waits for nothing (host work of no kind), so that op numbers stay.
  [[nodiscard]] SmallProgram without(program::OpKind kind, const std::string& event) const {
    SmallProgram copy = *this;
    const std::uint32_t id = copy.event_id(event);
    for (program::Op& op : copy.program.ops) {
      if (op.kind == kind && op.id == id) op = {.kind = program::OpKind::host_work};
    }
    return copy;
  }

 private:
  [[nodiscard]] std::uint32_t here() const { return static_cast<std::uint32_t>(program.ops.size()); }

  program::Op& push(program::OpKind kind, Stream stream, std::size_t id, const Uses& uses = {}) {
    program::Op op{.kind = kind, .stream = stream};
    op.id = static_cast<std::uint32_t>(id);
    op.operands = static_cast<std::uint32_t>(program.operands.size());
    op.operand_count = static_cast<std::uint8_t>(uses.size());
    for (const auto& [buffer, access] : uses) program.operands.push_back({buffer_id(buffer), access});
    program.ops.push_back(op);
    return program.ops.back();
  }

  static std::uint32_t find(std::vector<std::string>& names, const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name);
    const auto index = at - names.begin();
    if (at == names.end()) names.push_back(name);
    return static_cast<std::uint32_t>(index);
  }
  std::uint32_t buffer_id(const std::string& label) {
    const std::uint32_t id = find(buffers_, label);
    if (id == program.buffers.size()) program.buffers.push_back({1024, program::Owner::activations, label});
    return id;
  }
  std::uint32_t event_id(const std::string& label) {
    const std::uint32_t id = find(events_, label);
    if (id == program.events.size()) program.events.push_back({label});
    return id;
  }

  std::vector<std::string> buffers_, events_;
};

}  // namespace stepcast::test
