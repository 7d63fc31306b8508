// Numbers of the host's calls and of memory. Test: tests/model/profile_figures_test.cpp.
#include <algorithm>

#include "trace/profile/metrics.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

void add(CallTotal& total, Time length) {
  ++total.count;
  total.total += length;
  total.max = std::max(total.max, length);
}

void add(MemoryTotals& m, const MemoryEvent& event) {
  ++m.events;
  ++(event.bytes > 0 ? m.allocs : event.bytes < 0 ? m.frees : m.zero);
  m.net_bytes += event.bytes;
  m.running_sum_peak = std::max(m.running_sum_peak, m.net_bytes);
  m.running_sum_min = std::min(m.running_sum_min, m.net_bytes);
  m.with_address += event.address ? 1 : 0;
}

void add_totals(MemoryTotals& m, const MemoryEvent& event, std::int64_t& last_reserved) {
  if (event.total_allocated == kNone || event.total_reserved == kNone) return;
  if (!m.has_totals) {
    m.first_allocated = event.total_allocated;
    m.min_reserved = last_reserved = event.total_reserved;
    m.has_totals = true;
  }
  m.last_allocated = event.total_allocated;
  m.peak_allocated = std::max(m.peak_allocated, event.total_allocated);
  m.peak_reserved = std::max(m.peak_reserved, event.total_reserved);
  m.min_reserved = std::min(m.min_reserved, event.total_reserved);
  m.reserved_changes += event.total_reserved != last_reserved ? 1 : 0;
  last_reserved = event.total_reserved;
}

std::map<std::string, MemoryTotals> memory_of(const Profile& profile) {
  std::map<std::string, MemoryTotals> out;
  std::map<std::string, std::int64_t> last_reserved;
  for (const MemoryEvent& event : profile.memory) {
    const std::string device = std::to_string(event.device_type) + ":" + std::to_string(event.device_id);
    add(out[device], event);
    add_totals(out[device], event, last_reserved[device]);
  }
  return out;
}

}  // namespace

HostMetrics host_metrics(const Profile& profile) {
  HostMetrics m;
  for (const HostCall& call : profile.host_calls) {
    if (!call.runtime) continue;
    const std::string& name = profile.names[call.name];
    add(m.calls[name], call.end - call.begin);
    const CallKind kind = kind_of_call(name);
    if (kind == CallKind::allocator || kind == CallKind::synchronise) add(m.stalls[name], call.end - call.begin);
  }
  for (const HostOp& op : profile.host_ops) {
    if (is_data_loader(profile.names[op.name])) add(m.data_loader, op.end - op.begin);
  }
  m.memory = memory_of(profile);
  return m;
}

}  // namespace stepcast::trace::profile
