// Parts of gaps in which a collective ran: its transfer, one of another type in its way, or a host that had issued it late. Private to trace/profile.
// Document: docs/diagnose.md, "What a gap's end waited for". Test: tests/unit/profile_finer_causes_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "trace/profile/awaited.hpp"
#include "trace/profile/host_causes.hpp"
#include "trace/profile/main_inputs.hpp"

namespace stepcast::trace::profile {

/// What a wait for a collective of one type can be.
struct CauseNames {
  std::string transfer, behind_other, issued_late, inputs;
};

class CollectiveCauses {
 public:
  /// All but `inputs` are kept by reference.
  CollectiveCauses(const Profile& profile, const CollectiveLine& line, const Awaited& awaited, MainInputs inputs, HostCauses& host, FinerCauses& causes)
      : profile_(profile), line_(line), awaited_(awaited), inputs_(std::move(inputs)), host_(host), causes_(causes) {}

  [[nodiscard]] const CauseNames& names_of(const DeviceOp& collective);
  /// `time` of the gap in which `op` ran, from `part_begin` on at the earliest. An all-gather would have been over earlier by as much as it could have begun earlier.
  void running(const DeviceOp& op, Time time, Time part_begin, const IdleGap& gap, std::string_view transfer);

 private:
  [[nodiscard]] Time ready(const DeviceOp& op) const;
  std::size_t queued(const DeviceOp& op, std::uint32_t main);

  const Profile& profile_;
  const CollectiveLine& line_;
  const Awaited& awaited_;
  const MainInputs inputs_;
  HostCauses& host_;
  FinerCauses& causes_;
  std::map<std::string_view, CauseNames> names_;
  std::unordered_map<const DeviceOp*, std::size_t> places_;  // in the queue
};

}  // namespace stepcast::trace::profile
