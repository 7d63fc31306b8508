// Test: tests/unit/profile_gaps_test.cpp.
#include "trace/profile/host_activity.hpp"

namespace stepcast::trace::profile {

namespace {

std::vector<CallKind> kinds_of_names(const Texts& names) {
  std::vector<CallKind> kinds;
  for (std::uint32_t i = 0; i < names.size(); ++i) kinds.push_back(kind_of_call(names[i]));
  return kinds;
}

}  // namespace

HostActivity::HostActivity(const Profile& profile) {
  const std::vector<CallKind> kinds = kinds_of_names(profile.names);
  std::map<std::pair<std::uint32_t, CallKind>, Spans> by_kind;
  Spans loading, any;
  for (const HostCall& call : profile.host_calls) {
    if (!call.runtime) continue;
    any.push_back({call.begin, call.end});
    const CallKind kind = kinds[call.name];
    if (kind == CallKind::plain) continue;
    by_kind[{call.thread, kind}].push_back({call.begin, call.end});
    by_kind[{kAnyThread, kind}].push_back({call.begin, call.end});
  }
  for (const HostOp& op : profile.host_ops) {
    const std::string& name = profile.names[op.name];
    if (is_data_loader(name)) loading.push_back({op.begin, op.end});
    if (!op.annotation) any.push_back({op.begin, op.end});
  }
  for (auto& [key, spans] : by_kind) calls_.emplace(key, Coverage(std::move(spans)));
  loading_ = Coverage(std::move(loading));
  any_ = Coverage(std::move(any));
}

Time HostActivity::calls(CallKind kind, std::uint32_t thread, Time begin, Time end) const {
  const auto at = calls_.find({thread, kind});
  return at == calls_.end() ? Time{} : at->second.within(begin, end);
}

}  // namespace stepcast::trace::profile
