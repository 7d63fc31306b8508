// Test: tests/unit/profile_oddities_test.cpp.
#include "trace/profile/oddities.hpp"

#include <algorithm>
#include <array>

namespace stepcast::trace::profile {

namespace {

using enum Severity;
constexpr std::array kOddities = {Oddity{"truncated_file", error},
                                  Oddity{"compressed_data_cut_short", error},
                                  Oddity{"broken_headers", error},
                                  Oddity{"broken_events", error},
                                  Oddity{"array_elements_that_are_no_events", error},
                                  Oddity{"X_events_without_ts_or_dur", error},
                                  Oddity{"base_time_out_of_range", error},
                                  Oddity{"events_without_phase", error},
                                  Oddity{"events_of_unknown_phase", error},
                                  Oddity{"events_of_unknown_category", error},
                                  Oddity{"begin_end_events_not_read", error},
                                  Oddity{"memory_events_without_time_bytes_or_device", error},
                                  Oddity{"X_events_without_category", error},
                                  Oddity{"X_events_without_name", warning},
                                  Oddity{"negative_durations", warning},
                                  Oddity{"same_stream_overlaps", warning},
                                  Oddity{"overlapping_steps", warning},
                                  Oddity{"device_ops_without_launch_call", warning},
                                  Oddity{"device_ops_starting_before_their_launch_call", warning},
                                  Oddity{"device_ops_without_stream", warning},
                                  Oddity{"device_ids_not_in_deviceProperties", warning},
                                  Oddity{"runtime_calls_sharing_a_correlation_id", warning},
                                  Oddity{"runtime_calls_named_INVALID", warning},
                                  Oddity{"no_device_events", warning},
                                  Oddity{"processes_of_one_file", info},
                                  Oddity{"pid_shared_by_host_and_device_events", info},
                                  Oddity{"zero_dur_device_events", info},
                                  Oddity{"ts_given_as_string", info},
                                  Oddity{"tid_given_as_string", info},
                                  Oddity{"times_in_nanoseconds", info},
                                  Oddity{"fractional_us_ts_X_events", info}};

}  // namespace

std::string_view name(Severity severity) {
  constexpr std::array<std::string_view, 3> kNames = {"info", "warning", "error"};
  return kNames[static_cast<std::size_t>(severity)];
}

std::span<const Oddity> oddities() { return kOddities; }

Severity severity_of(std::string_view oddity) {
  const auto at = std::find_if(kOddities.begin(), kOddities.end(), [oddity](const Oddity& known) { return known.name == oddity; });
  return at == kOddities.end() ? error : at->severity;
}

}  // namespace stepcast::trace::profile
