// Turns events into a profile: interprets fields, interns names, counts what is odd. Private to trace/profile. Test: tests/unit/profile_reader_test.cpp.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "trace/profile/profile.hpp"
#include "trace/profile/reader.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

class Builder : public EventSink {
 public:
  void event(const RawEvent& event) override;
  void header(std::string_view key, const Value& value) override;
  void oddity(std::string_view name) override { note(name); }
  /// The profile, ordered; the builder is used up.
  Profile finish(const std::string& label);

 private:
  struct When {
    Time begin{}, end{};
  };

  void note(std::string_view name, std::int64_t count = 1);
  void count_event(const RawEvent& event);
  bool read_when(const RawEvent& event, When& when);
  void complete_event(const RawEvent& event);
  void device_op(const RawEvent& event, const When& when, DeviceKind kind);
  void host_call(const RawEvent& event, const When& when, bool runtime);
  void host_op(const RawEvent& event, const When& when, bool annotation);
  void memory_event(const RawEvent& event);
  std::uint32_t name_of(const RawEvent& event);
  std::uint32_t thread_of(const RawEvent& event);
  std::uint32_t stream_of(const RawEvent& event);
  std::uint32_t device_named(std::string_view text);
  std::uint32_t collective_of(const RawArguments& arguments);
  std::uint32_t traffic_of(const RawArguments& arguments);
  bool communicates(std::uint32_t name);
  EventClass class_of_category(std::string_view category);
  void put_in_order();
  void index_launches();
  void note_device_oddities();
  void note_overlapping_steps();

  Profile profile_;
  std::map<std::string, EventClass, std::less<>> classes_;
  std::vector<signed char> communicates_;  // by name: -1 not asked yet
  std::map<std::pair<std::string, std::string>, std::uint32_t> thread_numbers_;
  std::map<Stream, std::uint32_t> stream_numbers_;
  std::map<CollectiveArguments, std::uint32_t> collective_numbers_;
  std::map<Traffic, std::uint32_t> traffic_numbers_;
  std::string last_thread_[2];
  std::uint32_t last_thread_number_ = kNoIndex;
};

}  // namespace stepcast::trace::profile
