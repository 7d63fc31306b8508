// Writes programs as text.
#include "program/text.hpp"

#include <ostream>

#include "program/count.hpp"

namespace stepcast::program {
namespace {

const char* name(MarkKind kind) {
  switch (kind) {
    case MarkKind::step: return "step";
    case MarkKind::forward: return "forward";
    case MarkKind::backward: return "backward";
    case MarkKind::optimizer: return "optimizer";
    case MarkKind::unit: return "unit";
    case MarkKind::recompute: return "recompute";
  }
  return "?";
}

void write_shape(const hw::KernelShape& shape, std::ostream& out) {
  switch (shape.kind) {
    case hw::KernelKind::gemm:
      out << "gemm ";
      if (shape.batch > 1) out << shape.batch << " of ";
      out << shape.m << 'x' << shape.n << 'x' << shape.k << ' ' << hw::name(shape.dtype);
      break;
    case hw::KernelKind::attention_forward:
    case hw::KernelKind::attention_backward:
      out << (shape.causal ? "causal attention " : "attention ") << "b" << shape.batch << " s" << shape.m << " h" << shape.n << " kv" << shape.kv_heads << " d"
          << shape.k << ' ' << hw::name(shape.dtype);
      if (shape.window > 0) out << " window " << shape.window;
      break;
    case hw::KernelKind::memory_bound: out << "read " << shape.read_bytes << " write " << shape.write_bytes; break;
    case hw::KernelKind::copy_to_device: out << "copy " << shape.write_bytes << (shape.pinned ? " pinned" : " pageable"); break;
    case hw::KernelKind::copy_to_host: out << "copy to host " << shape.read_bytes; break;
    case hw::KernelKind::fixed: out << "fixed"; break;
  }
}

void write_operands(const Program& program, const Op& op, std::ostream& out) {
  if (op.operand_count == 0) return;
  const auto list = [&](auto&& selects) {
    const char* separator = "";
    for (const Operand& operand : program.operands_of(op)) {
      if (!selects(operand.access)) continue;
      out << separator << program.buffers[operand.buffer].label;
      separator = ", ";
    }
  };
  out << " (";
  list([](Access access) { return access != Access::write; });
  out << ") -> ";
  list([](Access access) { return access != Access::read; });
}

void write_call(const Program& program, const Op& op, std::ostream& out) {
  if (op.kind == OpKind::collective) {
    const CollectiveEntry& entry = program.collectives[op.id];
    out << '"' << entry.label << "\" " << hw::name(entry.shape.dtype) << " bytes " << entry.shape.bytes << " ranks " << entry.shape.group.nodes << 'x'
        << entry.shape.group.ranks_per_node;
  } else {
    const KernelEntry& entry = program.kernels[op.id];
    out << '"' << entry.op << "\" ";
    write_shape(entry.shape, out);
    out << " [" << program::name(op.work) << ']';
  }
  write_operands(program, op, out);
}

void write_range(const Program& program, Range range, std::ostream& out) {
  std::size_t depth = 1;
  for (const Op& op : program.slice(range)) {
    const bool mark = op.kind == OpKind::mark;
    if (mark && !program.marks[op.id].begin && depth > 1) --depth;
    for (std::size_t i = 0; i < depth; ++i) out << "  ";
    write_text(program, op, out);
    out << '\n';
    if (mark && program.marks[op.id].begin) ++depth;
  }
}

}  // namespace

void write_text(const Program& program, const Op& op, std::ostream& out) {
  switch (op.kind) {
    case OpKind::launch:
    case OpKind::collective:
      out << name(op.kind) << ' ' << name(op.stream) << ' ';
      write_call(program, op, out);
      break;
    case OpKind::record: out << "record " << name(op.stream) << " \"" << program.events[op.id].label << '"'; break;
    case OpKind::wait: out << "wait " << name(op.stream) << " for \"" << program.events[op.id].label << '"'; break;
    case OpKind::host_wait:
      out << "host_wait for \"" << program.events[op.id].label << "\" "
          << (op.count == static_cast<std::uint32_t>(WaitReason::rate_limiter) ? "rate_limiter" : "synchronize");
      break;
    case OpKind::alloc:
      out << "alloc " << name(op.stream) << ' ' << program.buffers[op.id].label << ' ' << program.buffers[op.id].bytes << ' '
          << name(program.buffers[op.id].owner);
      break;
    case OpKind::free: out << "free " << program.buffers[op.id].label; break;
    case OpKind::record_stream: out << "record_stream " << program.buffers[op.id].label << ' ' << name(op.stream); break;
    case OpKind::host_work: out << "host_work " << program::name(op.work) << " x" << op.count; break;
    case OpKind::next_batch: out << "next_batch"; break;
    case OpKind::mark:
      out << (program.marks[op.id].begin ? "begin " : "end ") << name(program.marks[op.id].kind) << " \"" << program.marks[op.id].label << '"';
      break;
  }
}

void write_text(const Program& program, std::ostream& out) {
  out << "setup\n";
  write_range(program, program.setup, out);
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    const Range range = program.steps[step];
    std::size_t same = 0;
    while (same < step && !(program.steps[same] == range)) ++same;
    if (same < step) {
      out << "step " << step << " as step " << same << '\n';
      continue;
    }
    out << "step " << step << '\n';
    write_range(program, range, out);
  }
}

}  // namespace stepcast::program
