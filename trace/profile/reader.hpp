// Streams the events of a Chrome/Kineto trace out of a byte source. Memory: a window that grows to the largest event, at most 16 MiB.
// What is damaged is stepped over and told to the sink by name. Test: tests/unit/profile_reader_test.cpp.
#pragma once

#include <string>
#include <string_view>

#include "trace/profile/byte_source.hpp"
#include "trace/profile/raw_event.hpp"

namespace stepcast::trace::profile {

/// What the reader finds, in the order of the file. The views live until the call returns.
class EventSink {
 public:
  EventSink() = default;
  virtual ~EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;
  virtual void event(const RawEvent& event) = 0;
  /// A member of the outermost object other than the events.
  virtual void header(std::string_view key, const Value& value) = 0;
  virtual void oddity(std::string_view name) = 0;
};

/// Throws InputError, naming `label`, where no array of events is found at all.
void read_events(ByteSource& source, const std::string& label, EventSink& sink);

}  // namespace stepcast::trace::profile
