// Rules of what is skipped, repaired and counted: docs/diagnose.md, "Oddities". Test: tests/unit/profile_reader_test.cpp.
#include "trace/profile/builder.hpp"

#include <algorithm>
#include <cstdlib>

namespace stepcast::trace::profile {

namespace {

// Microseconds since 1970 pass this in the year 5138; a larger time is in nanoseconds.
constexpr std::int64_t kLargestMicroseconds = 100'000'000'000'000'000;

bool has(const Value& value) { return value.kind != Value::Kind::absent; }

std::string text_of(const Value& value) {
  const bool escapes = value.kind == Value::Kind::string && value.text.find('\\') != std::string_view::npos;
  return escapes ? unescaped(value.text) : std::string(value.text);
}

std::int64_t integer_or_none(const Value& value) { return integer_of(value).value_or(kNone); }

/// The number in "stream 7".
std::int64_t trailing_number(std::string_view text) {
  const auto end = text.find_last_of("0123456789");
  if (end == std::string_view::npos) return kNone;
  auto begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  return integer_of({text.substr(begin, end - begin + 1), Value::Kind::string}).value_or(kNone);
}

void add(Counts& counts, std::string_view key, std::int64_t count = 1) {
  const auto at = counts.find(key);
  if (at != counts.end()) at->second += count;
  else counts.emplace(key, count);
}

}  // namespace

void Builder::note(std::string_view name, std::int64_t count) { add(profile_.oddities, name, count); }

void Builder::event(const RawEvent& event) {
  ++profile_.events;
  count_event(event);
  const std::string_view phase = event.phase.text;
  if (phase == "X") return complete_event(event);
  if ((phase == "i" || phase == "I") && event.name.text == "[memory]") return memory_event(event);
  if (phase == "B" || phase == "E") note("begin_end_events_not_read");
  // Other phases of Chrome's format: instants, counters, metadata, arrows, asynchronous events, samples, objects.
  constexpr std::string_view kOthers = "iIRCMstfbneSTpFPNODcvV";
  if (has(event.phase) && (phase.size() != 1 || (phase != "B" && phase != "E" && kOthers.find(phase[0]) == std::string_view::npos)))
    note("events_of_unknown_phase");
}

/// Counts that need no interpretation, and whether times are written with decimals.
void Builder::count_event(const RawEvent& event) {
  const std::string_view phase = event.phase.text;
  if (!has(event.phase)) note("events_without_phase");
  add(profile_.phases, has(event.phase) ? phase : "none");
  if (phase == "X") add(profile_.categories, has(event.category) ? event.category.text : "none");
  else if (phase == "s" || phase == "t" || phase == "f") add(profile_.flows, text_of(event.category) + ":" + std::string(phase));
  if (has(event.arguments.call_stack)) ++profile_.call_stacks;
  if (event.thread.kind == Value::Kind::string) note("tid_given_as_string");
  const bool number = event.begin.kind == Value::Kind::scalar;
  if (!number || event.begin.text.find_first_of(".eE") != std::string_view::npos) profile_.whole_microseconds = false;
}

/// Times in nanoseconds; false (and counted) where there are none.
bool Builder::read_when(const RawEvent& event, When& when) {
  auto begin = thousandths_of(event.begin);
  auto length = thousandths_of(event.duration);
  const auto raw = integer_of(event.begin);
  if (raw && *raw >= kLargestMicroseconds) {
    begin = raw;
    if (length) length = *length / 1000;
    note("times_in_nanoseconds");
  }
  if (!begin || !length || *begin > kLatest || *begin < kEarliest || *length > kLongest || *length < -kLongest)
    return note("X_events_without_ts_or_dur"), false;
  if (event.begin.kind == Value::Kind::string) note("ts_given_as_string");
  if (*length < 0) {
    note("negative_durations");
    length = 0;
  }
  when = {Time(*begin), Time(*begin + *length)};
  if (event.begin.text.find('.') != std::string_view::npos) note("fractional_us_ts_X_events");
  return true;
}

EventClass Builder::class_of_category(std::string_view category) {
  const auto known = classes_.find(category);
  return known != classes_.end() ? known->second : classes_.emplace(category, class_of(category)).first->second;
}

void Builder::complete_event(const RawEvent& event) {
  When when;
  if (!has(event.category)) note("X_events_without_category");
  if (!has(event.name)) note("X_events_without_name");
  const bool timed = read_when(event, when);
  const EventClass what = class_of_category(event.category.text);
  if (what == EventClass::python_function) ++profile_.python_functions;
  if (!timed) return;
  if (what == EventClass::device_annotation && is_step(event.name.text))
    profile_.device_steps.push_back({when.begin, when.end, kNone, name_of(event), kNoIndex, kNoIndex, true});
  switch (what) {
    case EventClass::kernel: return device_op(event, when, DeviceKind::compute);
    case EventClass::copy: return device_op(event, when, DeviceKind::copy);
    case EventClass::set: return device_op(event, when, DeviceKind::set);
    case EventClass::host_call: host_call(event, when, true); break;
    // Before there was a category for them, ranges stood among the operators; their names have a '#'.
    case EventClass::host_op: host_op(event, when, event.name.text.find('#') != std::string_view::npos); break;
    case EventClass::annotation: host_op(event, when, true); break;
    case EventClass::summary: return;
    case EventClass::device_annotation:
    case EventClass::python_function:
    case EventClass::other:
      if (!has(event.arguments.stream) && (has(event.arguments.correlation) || is_full_queue(event.name.text))) host_call(event, when, false);
      break;
  }
  if (has(event.arguments.stream)) device_op(event, when, DeviceKind::other);
}

bool Builder::communicates(std::uint32_t name) {
  if (name >= communicates_.size()) communicates_.resize(std::max<std::size_t>(name + 1, communicates_.size() * 2), -1);
  signed char& known = communicates_[name];
  if (known < 0) known = is_communication(profile_.names[name]) ? 1 : 0;
  return known == 1;
}

void Builder::device_op(const RawEvent& event, const When& when, DeviceKind kind) {
  DeviceOp op;
  op.begin = when.begin;
  op.end = when.end;
  op.name = name_of(event);
  op.stream = stream_of(event);
  op.stream_given = has(event.arguments.stream);
  op.correlation = integer_or_none(event.arguments.correlation);
  op.external_id = integer_or_none(event.arguments.external_id);
  op.kind = kind == DeviceKind::compute && communicates(op.name) ? DeviceKind::communication : kind;
  if (op.kind == DeviceKind::communication) op.collective = collective_of(event.arguments);
  if (op.kind == DeviceKind::compute) op.traffic = traffic_of(event.arguments);
  if (kind != DeviceKind::other && op.begin == op.end) note("zero_dur_device_events");
  profile_.device_ops.push_back(op);
}

void Builder::host_call(const RawEvent& event, const When& when, bool runtime) {
  const std::int64_t correlation = integer_or_none(event.arguments.correlation);
  if (runtime && event.name.text == "INVALID") note("runtime_calls_named_INVALID");
  if (runtime && correlation != kNone) {
    const auto number = static_cast<std::uint32_t>(profile_.host_calls.size());
    if (!profile_.launches.emplace(correlation, number).second) note("runtime_calls_sharing_a_correlation_id");
  }
  profile_.host_calls.push_back({when.begin, when.end, correlation, name_of(event), thread_of(event), runtime});
}

void Builder::host_op(const RawEvent& event, const When& when, bool annotation) {
  HostOp op{when.begin, when.end, integer_or_none(event.arguments.external_id), name_of(event), thread_of(event), kNoIndex, annotation};
  const Value& dims = event.arguments.input_dims;
  if (dims.kind == Value::Kind::container && dims.text.size() > 2) op.shapes = profile_.shapes.number_of(dims.text);
  if (op.shapes != kNoIndex && event.arguments.input_types.kind == Value::Kind::container)
    op.types = profile_.types.number_of(event.arguments.input_types.text);
  // Autograd's engine gives the number of the forward operator, and its thread, to what it runs; an operator that records has a number and no such thread.
  op.in_graph = integer_of(event.arguments.sequence_number).value_or(-1) >= 0 && integer_of(event.arguments.forward_thread).value_or(0) == 0;
  profile_.host_ops.push_back(op);
}

void Builder::memory_event(const RawEvent& event) {
  const RawArguments& a = event.arguments;
  const auto time = thousandths_of(event.begin);
  const auto bytes = integer_of(a.bytes), type = integer_of(a.device_type), id = integer_of(a.device_id);
  const bool usable = time && bytes && type && id && *time >= kEarliest && *time <= kLatest && std::abs(*bytes / 2) <= kLargestBytes / 2;
  if (!usable) return note("memory_events_without_time_bytes_or_device");
  profile_.memory.push_back({Time(*time), *bytes, *type, *id, integer_or_none(a.total_allocated), integer_or_none(a.total_reserved), has(a.address)});
}

std::uint32_t Builder::name_of(const RawEvent& event) {
  const Value& name = event.name;
  const bool escapes = name.kind == Value::Kind::string && name.text.find('\\') != std::string_view::npos;
  return profile_.names.number_of(escapes ? unescaped(name.text) : name.text);
}

std::uint32_t Builder::thread_of(const RawEvent& event) {
  if (last_thread_number_ != kNoIndex && last_thread_[0] == event.process.text && last_thread_[1] == event.thread.text) return last_thread_number_;
  last_thread_[0] = event.process.text;
  last_thread_[1] = event.thread.text;
  const auto [at, added] = thread_numbers_.emplace(std::pair(last_thread_[0], last_thread_[1]), static_cast<std::uint32_t>(profile_.threads.size()));
  if (added) profile_.threads.push_back(text_of(event.process) + "/" + text_of(event.thread));
  return last_thread_number_ = at->second;
}

std::uint32_t Builder::device_named(std::string_view text) {
  auto& devices = profile_.devices;
  const auto at = std::find(devices.begin(), devices.end(), text);
  if (at != devices.end()) return static_cast<std::uint32_t>(at - devices.begin());
  devices.emplace_back(text);
  return static_cast<std::uint32_t>(devices.size() - 1);
}

std::uint32_t Builder::stream_of(const RawEvent& event) {
  Stream stream;
  stream.device = device_named(has(event.arguments.device) ? text_of(event.arguments.device) : text_of(event.process));
  stream.number = has(event.arguments.stream) ? integer_or_none(event.arguments.stream) : trailing_number(event.thread.text);
  if (stream.number == kNone) {
    note("device_ops_without_stream");
    stream.number = -1;
  }
  const auto [at, added] = stream_numbers_.emplace(stream, static_cast<std::uint32_t>(profile_.streams.size()));
  if (added) profile_.streams.push_back(stream);
  return at->second;
}

std::uint32_t Builder::collective_of(const RawArguments& a) {
  if (!has(a.collective) && !has(a.in_elements)) return kNoIndex;
  CollectiveArguments c{text_of(a.collective),          text_of(a.dtype),
                        text_of(a.group_name),          text_of(a.group_ranks),
                        integer_or_none(a.in_elements), integer_or_none(a.out_elements),
                        integer_or_none(a.group_size)};
  const auto [at, added] = collective_numbers_.emplace(c, static_cast<std::uint32_t>(profile_.collectives.size()));
  if (added) profile_.collectives.push_back(std::move(c));
  return at->second;
}

std::uint32_t Builder::traffic_of(const RawArguments& a) {
  const auto read = integer_of(a.read_bytes), written = integer_of(a.written_bytes);
  if (!has(a.memory_class) || !read || !written || *read < 0 || *written < 0 || *read > kLargestBytes || *written > kLargestBytes) return kNoIndex;
  const auto [at, added] = traffic_numbers_.emplace(Traffic{text_of(a.memory_class), *read, *written}, static_cast<std::uint32_t>(profile_.traffics.size()));
  if (added) profile_.traffics.push_back(at->first);
  return at->second;
}

}  // namespace stepcast::trace::profile
