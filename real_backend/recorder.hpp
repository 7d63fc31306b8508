// Names and context of what one rank does, for its trace: laid out once from the program, so that slices carry numbers only. Test: tests/unit/train_test.cpp.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "memory/caching_allocator.hpp"
#include "program/program.hpp"
#include "real_backend/device.hpp"
#include "trace/trace.hpp"

namespace stepcast::real {

class Recorder {
 public:
  Recorder(const program::Program& program, const Clock& clock);

  void enter_step(std::int32_t step);
  void leave_step();
  void mark(std::uint32_t id);
  /// The slice that the device will fill in; the host's own, which ends now, is noted.
  trace::Slice device_slice(const program::Op& op, SimTime begin);
  void host_wait(trace::HostState state, SimTime begin);
  void memory(std::int64_t delta, std::uint64_t address, const memory::Statistics& statistics);
  /// Joined with the device's slices, lane by lane in the order of their ends.
  trace::Trace take(std::vector<trace::Slice> device);

 private:
  const program::Program& program_;
  const Clock& clock_;
  trace::Trace trace_;
  trace::Context context_;
  std::vector<std::pair<std::uint32_t, SimTime>> open_;
  std::uint32_t collective_names_ = 0, mark_names_ = 0, wait_names_ = 0, correlation_ = 0;
};

}  // namespace stepcast::real
