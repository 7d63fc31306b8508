// The executor that proves: every buffer access is ordered by happens-before, no memory is used before it is taken or while it may belong to another buffer,
// nothing leaks, and all ranks issue the collectives of a communicator in one order. Rules: docs/check.md. Test: tests/unit/check_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "program/program.hpp"

namespace stepcast::program {

enum class Fault : std::uint8_t {
  malformed,   // an id or range that points outside the program's tables
  race,        // two accesses of one buffer, at least one of them a write, in no order
  reuse_race,  // a buffer's memory is handed out again while an earlier use may still run (a missing record_stream or wait)
  use_before_alloc,
  use_after_free,  // enqueued after the host has given the buffer back
  alloc_twice,
  free_twice,          // or freed without having been taken
  wait_before_record,  // the wait has no effect: the event has never been recorded
  leak,                // live at the end of a step and not at the end of the step before
  collective_order,    // two ranks issue different collectives at the same place of a communicator's sequence
  collective_count     // one rank issues more collectives than another
};
const char* name(Fault fault);

inline constexpr std::uint32_t kNoOp = ~std::uint32_t{0};

/// One execution of one op. `unit` indexes Program::marks (the innermost open unit range), kNoOp outside of any.
struct OpPlace {
  std::uint32_t op = kNoOp;
  std::int32_t step = -1;  // -1 = set-up
  std::uint32_t unit = kNoOp;
  std::int32_t rank = 0;
  bool operator==(const OpPlace&) const = default;
};

struct Finding {
  Fault fault = Fault::race;
  OpPlace first, second;  // in host order; `second.op` is kNoOp where only one op is at fault
  std::string text;       // one line that names both ops in words
};

/// Faults of one rank's program, in the order in which they are met; empty = proven clean. After a race the checker goes on as if the missing wait were
/// there, so that one cause gives one finding. Time is linear in the ops of two repetitions of each distinct step.
std::vector<Finding> check(const Program& program);

/// Compares the collectives of all ranks, communicator by communicator, with those of the first rank: kinds, types, sizes and order must agree.
/// At most one finding per communicator and rank: the first difference.
std::vector<Finding> check_ranks(std::span<const Program> ranks);

/// `op 1234 (launch "aten::mm q_proj" on compute, in forward b3, step 1)`.
std::string describe(const Program& program, const OpPlace& place);

}  // namespace stepcast::program
