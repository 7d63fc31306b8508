// See without_limit.hpp.
#include "cli/without_limit.hpp"

#include <algorithm>
#include <utility>

namespace stepcast::cli {

Report without_memory_limit(scenarios::Scenario scenario, const program::Program& program) {
  constexpr std::int64_t kPlenty = std::int64_t{1} << 46;  // bytes of a device that nothing fills
  scenario.allocator.device_memory = kPlenty;
  scenario.allocator.memory_fraction.reset();
  return forecast(scenario, program);
}

std::int64_t missing_bytes(const scenarios::Scenario& scenario, const program::Program& program, const Report& failed) {
  const OutOfMemoryRow& o = failed.out_of_memory;
  return std::max(without_memory_limit(scenario, program).peak_reserved_bytes - failed.memory_limit_bytes, o.reserved_bytes + o.segment_bytes - o.limit_bytes);
}

}  // namespace stepcast::cli
