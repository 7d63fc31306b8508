// Parts of gaps in which a launch was missing: what the host was at until then, or what had taken its lead before. Private to trace/profile.
// Document: docs/diagnose.md, "What a gap's end waited for". Test: tests/unit/profile_finer_causes_test.cpp.
#pragma once

#include <string_view>

#include "trace/profile/finer_causes.hpp"
#include "trace/profile/lost_lead.hpp"
#include "trace/profile/step_context.hpp"

namespace stepcast::trace::profile {

/// Counts `time`, if there is any, as one part of a cause.
void add_part(FinerCauses& causes, std::string_view cause, Time time);

class HostCauses {
 public:
  /// All but `lead` are kept by reference.
  HostCauses(HostTime& host, const StepContext& steps, LostLead lead, FinerCauses& causes)
      : host_(host), steps_(steps), lead_(std::move(lead)), causes_(causes) {}

  /// The host launched at the end of `part`. `late`: the cause where it was busy, and nothing before had held it up.
  void until(const HostCall& launch, Span part, std::string_view late);
  /// A launch came `time` too late although the host was busy: what had taken its lead before, or else the launches themselves.
  void too_late(const HostCall& launch, Time time, std::string_view late);

 private:
  [[nodiscard]] std::string_view cause_of(HostAt state, Time at) const;

  HostTime& host_;
  const StepContext& steps_;
  LostLead lead_;
  FinerCauses& causes_;
};

}  // namespace stepcast::trace::profile
