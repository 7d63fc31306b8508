// The text form of a program, one op per line: for people (`show --program`), for goldens and for diffs. Stable: equal programs have equal texts.
// Test: tests/unit/program_text_test.cpp with tests/golden/program_*.txt.
#pragma once

#include <iosfwd>

#include "program/program.hpp"

namespace stepcast::program {

/// Set-up and every distinct step; ranges (steps, phases, units) are indented. `steps` lines tell which steps share ops.
void write_text(const Program& program, std::ostream& out);

/// One op without line end, e.g. `launch compute "aten::mm q" gemm 4096x4096x4096 bf16 [op_forward] (b0.norm1.out, b0.params) -> b0.q`.
void write_text(const Program& program, const Op& op, std::ostream& out);

}  // namespace stepcast::program
