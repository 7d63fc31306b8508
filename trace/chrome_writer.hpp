// Writes a trace as Chrome/Kineto JSON that Perfetto and tools for PyTorch profiles read: ProfilerStep marks, CPU ops, launches, kernels per stream,
// NCCL kernels with sizes, ac2g flows, memory counters and `[memory]` instants, distributedInfo. Test: tests/unit/chrome_writer_test.cpp.
#pragma once

#include <iosfwd>
#include <string>

#include "trace/trace.hpp"

namespace stepcast::trace {

void write_chrome(const Trace& trace, std::ostream& out);
/// The same, gzip-compressed, written to a temporary file and renamed, so that no half file is left. Throws std::system_error.
void write_chrome_gz(const Trace& trace, const std::string& path);

}  // namespace stepcast::trace
