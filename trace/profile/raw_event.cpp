// Names of fields: Chrome's trace event format and Kineto's output. Test: tests/unit/profile_scan_test.cpp.
#include "trace/profile/raw_event.hpp"

#include <cstring>

namespace stepcast::trace::profile {

namespace {

/// For a key of as many characters: a comparison of so few bytes that no call is needed, which one of unknown length is. Half a million events have three million keys.
template <std::size_t N>
bool same(std::string_view key, const char (&text)[N]) {
  return std::memcmp(key.data(), text, N - 1) == 0;
}

Value* argument_named(RawArguments& a, std::string_view key) {
  switch (key.size()) {
    case 4: return same(key, "Addr") ? &a.address : nullptr;
    case 5: return same(key, "Bytes") || same(key, "bytes") ? &a.bytes : same(key, "dtype") ? &a.dtype : nullptr;
    case 6: return same(key, "stream") ? &a.stream : same(key, "device") ? &a.device : nullptr;
    case 9: return same(key, "Device Id") ? &a.device_id : nullptr;
    case 10:
      return same(key, "Call stack")                              ? &a.call_stack
             : same(key, "Input Dims") || same(key, "Input dims") ? &a.input_dims
             : same(key, "Input type")                            ? &a.input_types
             : same(key, "Group size")                            ? &a.group_size
             : same(key, "Read bytes")                            ? &a.read_bytes
                                                                  : nullptr;
    case 11:
      return same(key, "correlation")                               ? &a.correlation
             : same(key, "External id") || same(key, "external id") ? &a.external_id
             : same(key, "Device Type")                             ? &a.device_type
                                                                    : nullptr;
    case 12: return same(key, "Memory class") ? &a.memory_class : nullptr;
    case 13:
      return same(key, "In msg nelems")   ? &a.in_elements
             : same(key, "Fwd thread id") ? &a.forward_thread
             : same(key, "Written bytes") ? &a.written_bytes
                                          : nullptr;
    case 14: return same(key, "Out msg nelems") ? &a.out_elements : same(key, "Total Reserved") ? &a.total_reserved : nullptr;
    case 15:
      return same(key, "Collective name")   ? &a.collective
             : same(key, "Total Allocated") ? &a.total_allocated
             : same(key, "Sequence number") ? &a.sequence_number
                                            : nullptr;
    case 18: return same(key, "Process Group Name") ? &a.group_name : nullptr;
    case 19: return same(key, "Process Group Ranks") ? &a.group_ranks : nullptr;
    default: return nullptr;
  }
}

Value* field_named(RawEvent& event, std::string_view key) {
  switch (key.size()) {
    case 2: return same(key, "ph") ? &event.phase : same(key, "ts") ? &event.begin : nullptr;
    case 3:
      return same(key, "dur")   ? &event.duration
             : same(key, "cat") ? &event.category
             : same(key, "pid") ? &event.process
             : same(key, "tid") ? &event.thread
                                : nullptr;
    case 4: return same(key, "name") ? &event.name : nullptr;
    default: return nullptr;
  }
}

Scan scan_arguments(Cursor& in, RawArguments& arguments) {
  if (*in.at != '{') {
    Value other;
    return scan_value(in, other);
  }
  return scan_object(in, [&](Cursor& at, std::string_view key) {
    Value ignored;
    Value* const slot = argument_named(arguments, key);
    return scan_value(at, slot ? *slot : ignored);
  });
}

}  // namespace

Scan scan_event(Cursor& in, RawEvent& event) {
  return scan_object(in, [&](Cursor& at, std::string_view key) {
    if (key.size() == 4 && same(key, "args")) return scan_arguments(at, event.arguments);
    Value ignored;
    Value* const slot = field_named(event, key);
    return scan_value(at, slot ? *slot : ignored);
  });
}

}  // namespace stepcast::trace::profile
