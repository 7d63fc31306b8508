// An imported profile of one process or more: device operations, host calls and host ops with exact times, names interned, memory events, and what was odd about the file.
// Definitions of what counts as what: docs/diagnose.md. Test: tests/unit/profile_reader_test.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/interval_sets.hpp"

namespace stepcast::trace::profile {

using Time = std::chrono::nanoseconds;                        // as the file counts it
inline constexpr Time kSoon = std::chrono::microseconds(10);  // what begins within this time of another's end, followed it at once
inline double ratio(Time part, Time whole) { return whole.count() == 0 ? 0 : static_cast<double>(part.count()) / static_cast<double>(whole.count()); }
using Span = BasicInterval<Time>;
using Spans = BasicIntervals<Time>;
using Counts = std::map<std::string, std::int64_t, std::less<>>;

// Nanoseconds. Times up to the year 2043, and events up to 13 days, so that no sum of a readable file can overflow.
inline constexpr std::int64_t kEarliest = -(std::int64_t{1} << 55), kLatest = std::int64_t{1} << 61, kLongest = std::int64_t{1} << 50;
inline constexpr std::int64_t kLargestBytes = std::int64_t{1} << 53;
inline constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
inline constexpr std::uint32_t kNoIndex = 0xffffffff;

/// Texts by number, each kept once.
class Texts {
 public:
  std::uint32_t number_of(std::string_view text);
  [[nodiscard]] const std::string& operator[](std::uint32_t number) const { return texts_[number]; }
  [[nodiscard]] std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

enum class DeviceKind : std::uint8_t { compute, communication, copy, set, other };

/// An operation on a stream. `other`: a range or a synchronisation that only HolisticTraceAnalysis counts as one.
struct DeviceOp {
  Time begin{}, end{};
  std::int64_t correlation = kNone, external_id = kNone;
  std::uint32_t name = 0, stream = 0;  // stream: index into Profile::streams
  std::uint32_t collective = kNoIndex;
  std::uint32_t traffic = kNoIndex;  // index into Profile::traffics
  DeviceKind kind = DeviceKind::compute;
  bool stream_given = true;  // as an argument, not only by the row on which it stands
};

/// A call into the CUDA or HIP runtime or driver (`runtime`), or another host event with a correlation.
struct HostCall {
  Time begin{}, end{};
  std::int64_t correlation = kNone;
  std::uint32_t name = 0, thread = 0;
  bool runtime = true;
};

struct HostOp {
  Time begin{}, end{};
  std::int64_t external_id = kNone;
  std::uint32_t name = 0, thread = 0;
  std::uint32_t shapes = kNoIndex;  // index into Profile::shapes: the text of its input shapes
  bool annotation = false;
  bool in_graph = false;           // autograd recorded it: it is of a forward
  std::uint32_t types = kNoIndex;  // index into Profile::types: the text of its inputs' types
};

/// A "[memory]" instant.
struct MemoryEvent {
  Time time{};
  std::int64_t bytes = 0, device_type = 0, device_id = 0;
  std::int64_t total_allocated = kNone, total_reserved = kNone;
  bool address = false;
};

struct Stream {
  std::uint32_t device = 0;  // index into Profile::devices
  std::int64_t number = 0;
  auto operator<=>(const Stream&) const = default;
};

/// What a communication kernel's arguments say; kNone and empty where they don't.
struct CollectiveArguments {
  std::string name, dtype, group, group_ranks;
  std::int64_t in_elements = kNone, out_elements = kNone, group_size = kNone;
  auto operator<=>(const CollectiveArguments&) const = default;
};

/// What a simulated kernel says of its memory traffic.
struct Traffic {
  std::string memory_class;
  std::int64_t read = 0, written = 0;
  auto operator<=>(const Traffic&) const = default;
};

struct Header {
  std::optional<std::int64_t> rank, world_size, base_time_ns;
  std::string backend;
  std::map<std::int64_t, std::string> gpus;  // deviceProperties: id -> name
  std::map<std::int64_t, double> gpu_memory_bytes;
};

/// A host range "ProfilerStep#n".
struct Step {
  std::string name;
  Span time;
};

struct Profile {
  std::string label;  // the file
  Header header;
  Texts names, shapes, types;
  std::vector<std::string> devices;  // as the file calls them: "0"
  std::vector<Stream> streams;
  std::vector<std::string> threads;  // "process/thread"
  std::vector<CollectiveArguments> collectives;
  std::vector<Traffic> traffics;
  std::vector<DeviceOp> device_ops;  // ordered by begin, then as in the file; so are the others
  std::vector<HostCall> host_calls;
  std::vector<HostOp> host_ops;
  std::vector<MemoryEvent> memory;
  std::vector<HostOp> device_steps;                          // ProfilerStep ranges as the device ran them, in the order of the file
  std::unordered_map<std::int64_t, std::uint32_t> launches;  // correlation -> the call that comes first in the file

  std::int64_t events = 0, python_functions = 0, call_stacks = 0;
  Counts phases, categories, flows;  // of events: by "ph", of complete events by "cat", of arrows by name and direction
  Counts oddities;
  bool whole_microseconds = true;  // every event has a time, written without decimals

  [[nodiscard]] const HostCall* launch_of(const DeviceOp& op) const;
};

inline bool is_kernel(const DeviceOp& op) { return op.kind == DeviceKind::compute || op.kind == DeviceKind::communication; }
inline bool is_memory(const DeviceOp& op) { return op.kind == DeviceKind::copy || op.kind == DeviceKind::set; }
inline double microseconds(Time time) { return static_cast<double>(time.count()) / 1000.0; }

}  // namespace stepcast::trace::profile
