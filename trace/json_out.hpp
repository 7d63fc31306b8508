// Streams JSON text: a buffer in front of an ostream, strings escaped, times as Kineto writes them. Private to trace/. Test: tests/unit/json_out_test.cpp.
#pragma once

#include <fmt/format.h>

#include <iosfwd>
#include <iterator>
#include <string_view>
#include <utility>

#include "hw_models/sim_time.hpp"

namespace stepcast::trace {

/// A time in whole nanoseconds, halves up; the resolution of a profiler's file.
std::int64_t to_nanoseconds(SimTime time);

class JsonOut {
 public:
  explicit JsonOut(std::ostream& out) : out_(out) {}

  /// Literal JSON; arguments must be numbers or need no escape.
  template <class... Args>
  JsonOut& print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    return *this;
  }
  /// A JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, so that every name gives a valid file.
  JsonOut& string(std::string_view text);
  /// Microseconds with three decimals.
  JsonOut& microseconds(std::int64_t nanoseconds);
  /// Starts an element of the array of events: "," where one is due.
  JsonOut& next_event();
  /// Hands the buffer to the stream; must be called at the end.
  void flush();

 private:
  std::ostream& out_;
  fmt::memory_buffer buffer_;
  bool any_event_ = false;
};

}  // namespace stepcast::trace
