// Test: tests/unit/profile_reader_test.cpp.
#include "trace/profile/profile.hpp"

namespace stepcast::trace::profile {

std::uint32_t Texts::number_of(std::string_view text) {
  const auto known = numbers_.find(text);
  if (known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(texts_.size());
  numbers_.emplace(texts_.emplace_back(text), number);
  return number;
}

const HostCall* Profile::launch_of(const DeviceOp& op) const {
  if (op.correlation == kNone) return nullptr;
  const auto call = launches.find(op.correlation);
  return call == launches.end() ? nullptr : &host_calls[call->second];
}

}  // namespace stepcast::trace::profile
