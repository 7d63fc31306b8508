// One event of a trace file as its text: the fields that the analysis knows, unread. Private to trace/profile. Test: tests/unit/profile_scan_test.cpp.
#pragma once

#include "trace/profile/scan.hpp"

namespace stepcast::trace::profile {

/// The arguments that mean something to the analysis, under Kineto's names.
struct RawArguments {
  Value correlation, stream, device, external_id, call_stack;
  Value bytes, address, device_type, device_id, total_allocated, total_reserved;  // [memory] instants; bytes: copies too
  Value collective, in_elements, out_elements, group_size, dtype, group_name, group_ranks;
  Value input_dims, input_types, sequence_number, forward_thread;
  Value memory_class, read_bytes, written_bytes;  // of simulated kernels
};

struct RawEvent {
  Value phase, category, name, process, thread, begin, duration;
  RawArguments arguments;
};

/// The object whose '{' is next. Unknown keys are skipped; of a key given twice the last counts.
Scan scan_event(Cursor& in, RawEvent& event);

}  // namespace stepcast::trace::profile
