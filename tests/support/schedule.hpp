// A program's schedule as short words, for tests that compare orders: "AG b3", "RS b3", "AR", "kernel op", "host waits F(b1)", "compute waits unshard".
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "program/build.hpp"

namespace stepcast::program::test {

inline std::string unit_of(const Program& program, std::uint32_t buffer) {
  const std::string& label = program.buffers[buffer].label;
  return label.substr(0, label.find('.'));
}

inline std::string word(const Program& program, const Op& op) {
  switch (op.kind) {
    case OpKind::launch: return "kernel " + program.kernels[op.id].op;
    case OpKind::host_wait: return "host waits " + program.events[op.id].label;
    case OpKind::record: return "record " + program.events[op.id].label;
    case OpKind::wait: return std::string(name(op.stream)) + " waits " + program.events[op.id].label;
    case OpKind::collective: {
      const auto kind = program.collectives[op.id].shape.kind;
      if (kind == hw::CollectiveKind::all_reduce) return "AR";
      return (kind == hw::CollectiveKind::all_gather ? "AG " : "RS ") + unit_of(program, program.operands_of(op)[0].buffer);
    }
    default: return name(op.kind);
  }
}

/// Words of the ops of the given kinds, in order.
inline std::vector<std::string> words(const Program& program, Range range, std::initializer_list<OpKind> kinds) {
  std::vector<std::string> result;
  for (const Op& op : program.slice(range)) {
    if (std::find(kinds.begin(), kinds.end(), op.kind) != kinds.end()) result.push_back(word(program, op));
  }
  return result;
}

/// Collectives of one step, counted from 0, in order.
inline std::vector<std::string> collectives(const StepSpec& spec, int step = 1) {
  const Program program = build_program(spec, step + 1);
  return words(program, program.steps[static_cast<std::size_t>(step)], {OpKind::collective});
}

inline long count_of(const std::vector<std::string>& list, const std::string& word) { return std::count(list.begin(), list.end(), word); }
inline long count_prefix(const std::vector<std::string>& list, const std::string& prefix) {
  return std::count_if(list.begin(), list.end(), [&](const std::string& w) { return w.rfind(prefix, 0) == 0; });
}

}  // namespace stepcast::program::test
