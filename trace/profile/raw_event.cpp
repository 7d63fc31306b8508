// Names of fields: Chrome's trace event format and Kineto's output. Test: tests/unit/profile_scan_test.cpp.
#include "trace/profile/raw_event.hpp"

namespace stepcast::trace::profile {

namespace {

Value* argument_named(RawArguments& a, std::string_view key) {
  switch (key.size()) {
    case 4: return key == "Addr" ? &a.address : nullptr;
    case 5: return key == "Bytes" || key == "bytes" ? &a.bytes : key == "dtype" ? &a.dtype : nullptr;
    case 6: return key == "stream" ? &a.stream : key == "device" ? &a.device : nullptr;
    case 9: return key == "Device Id" ? &a.device_id : nullptr;
    case 10:
      return key == "Call stack"                          ? &a.call_stack
             : key == "Input Dims" || key == "Input dims" ? &a.input_dims
             : key == "Input type"                        ? &a.input_types
             : key == "Group size"                        ? &a.group_size
             : key == "Read bytes"                        ? &a.read_bytes
                                                          : nullptr;
    case 11:
      return key == "correlation"                           ? &a.correlation
             : key == "External id" || key == "external id" ? &a.external_id
             : key == "Device Type"                         ? &a.device_type
                                                            : nullptr;
    case 12: return key == "Memory class" ? &a.memory_class : nullptr;
    case 13: return key == "In msg nelems" ? &a.in_elements : key == "Fwd thread id" ? &a.forward_thread : key == "Written bytes" ? &a.written_bytes : nullptr;
    case 14: return key == "Out msg nelems" ? &a.out_elements : key == "Total Reserved" ? &a.total_reserved : nullptr;
    case 15:
      return key == "Collective name" ? &a.collective : key == "Total Allocated" ? &a.total_allocated : key == "Sequence number" ? &a.sequence_number : nullptr;
    case 18: return key == "Process Group Name" ? &a.group_name : nullptr;
    case 19: return key == "Process Group Ranks" ? &a.group_ranks : nullptr;
    default: return nullptr;
  }
}

Value* field_named(RawEvent& event, std::string_view key) {
  if (key == "ph") return &event.phase;
  if (key == "ts") return &event.begin;
  if (key == "dur") return &event.duration;
  if (key == "cat") return &event.category;
  if (key == "pid") return &event.process;
  if (key == "tid") return &event.thread;
  return key == "name" ? &event.name : nullptr;
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
    if (key == "args") return scan_arguments(at, event.arguments);
    Value ignored;
    Value* const slot = field_named(event, key);
    return scan_value(at, slot ? *slot : ignored);
  });
}

}  // namespace stepcast::trace::profile
