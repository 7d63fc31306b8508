// Collective order across ranks, and the words in which findings name ops. NCCL hangs or mixes data where ranks disagree. Test: tests/unit/check_test.cpp.
#include <fmt/format.h>

#include <array>

#include "program/check.hpp"

namespace stepcast::program {
namespace {

using Sequence = std::vector<OpPlace>;

/// The collectives of each communicator in the order of the host's calls, over set-up and all steps.
std::array<Sequence, kCommunicators> collectives_of(const Program& program, std::int32_t rank) {
  std::array<Sequence, kCommunicators> result;
  const auto walk = [&](Range range, std::int32_t step) {
    std::uint32_t unit = kNoOp;
    for (std::uint32_t i = range.begin; i < range.end; ++i) {
      const Op& op = program.ops[i];
      if (op.kind == OpKind::mark && program.marks[op.id].kind == MarkKind::unit) unit = program.marks[op.id].begin ? op.id : kNoOp;
      if (op.kind == OpKind::collective) result[static_cast<std::size_t>(program.collectives[op.id].communicator)].push_back({i, step, unit, rank});
    }
  };
  walk(program.setup, -1);
  for (std::size_t i = 0; i < program.steps.size(); ++i) walk(program.steps[i], static_cast<std::int32_t>(i));
  return result;
}

std::string words(const Program& program, const OpPlace& place) {
  const hw::CollectiveShape& shape = program.collectives[program.ops[place.op].id].shape;
  return fmt::format("rank {} issues {} ({} of {} bytes, {})", place.rank, describe(program, place), hw::name(shape.kind), shape.bytes, hw::name(shape.dtype));
}

void compare(std::span<const Program> ranks, std::size_t rank, const Sequence& first, const Sequence& other, const char* communicator,
             std::vector<Finding>& findings) {
  const std::size_t common = std::min(first.size(), other.size());
  for (std::size_t i = 0; i < common; ++i) {
    const Program &a = ranks[0], &b = ranks[rank];
    if (a.collectives[a.ops[first[i].op].id].shape == b.collectives[b.ops[other[i].op].id].shape) continue;
    findings.push_back(
        {Fault::collective_order, first[i], other[i],
         fmt::format("collective order: as number {} of the {} communicator {}, but {}", i, communicator, words(a, first[i]), words(b, other[i]))});
    return;
  }
  if (first.size() == other.size()) return;
  const bool more_in_first = first.size() > other.size();
  const OpPlace& extra = more_in_first ? first[common] : other[common];
  const std::size_t fewer_rank = more_in_first ? rank : 0;
  findings.push_back({Fault::collective_count,
                      extra,
                      {},
                      fmt::format("collective count: as number {} of the {} communicator {}, but rank {} issues none", common, communicator,
                                  words(ranks[static_cast<std::size_t>(extra.rank)], extra), fewer_rank)});
}

}  // namespace

std::vector<Finding> check_ranks(std::span<const Program> ranks) {
  std::vector<Finding> findings;
  if (ranks.empty()) return findings;
  const auto first = collectives_of(ranks[0], 0);
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    const auto other = collectives_of(ranks[rank], static_cast<std::int32_t>(rank));
    for (std::size_t c = 0; c < kCommunicators; ++c) compare(ranks, rank, first[c], other[c], name(static_cast<Communicator>(c)), findings);
  }
  return findings;
}

const char* name(Fault fault) {
  static constexpr const char* kNames[] = {"malformed",          "race", "reuse race",       "use before alloc", "use after free", "alloc twice", "free twice",
                                           "wait before record", "leak", "collective order", "collective count"};
  return kNames[static_cast<std::size_t>(fault)];
}

std::string describe(const Program& program, const OpPlace& place) {
  const Op& op = program.ops[place.op];
  std::string subject;
  bool on_stream = true;
  switch (op.kind) {
    case OpKind::launch: subject = program.kernels[op.id].op; break;
    case OpKind::collective: subject = program.collectives[op.id].label; break;
    case OpKind::record:
    case OpKind::wait: subject = program.events[op.id].label; break;
    case OpKind::host_wait:
      subject = program.events[op.id].label;
      on_stream = false;
      break;
    case OpKind::alloc:
    case OpKind::record_stream: subject = program.buffers[op.id].label; break;
    case OpKind::free:
      subject = program.buffers[op.id].label;
      on_stream = false;
      break;
    default: on_stream = false; break;
  }
  std::string text = fmt::format("op {} ({}", place.op, name(op.kind));
  if (!subject.empty()) text += fmt::format(" \"{}\"", subject);
  if (on_stream) text += fmt::format(" on {}", name(op.stream));
  if (place.unit != kNoOp && !program.marks[place.unit].label.empty()) text += fmt::format(", in {}", program.marks[place.unit].label);
  return text + (place.step < 0 ? ", set-up)" : fmt::format(", step {})", place.step));
}

}  // namespace stepcast::program
