// From JSON to entries; nothing is skipped without a count. Keys and actions: torch/csrc/cuda/memory_snapshot.cpp. Test: tests/unit/snapshot_test.cpp.
#include "memory/snapshot_entries.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "hw_models/strict_json.hpp"
#include "hw_models/text_file.hpp"
#include "memory/sizes.hpp"

namespace stepcast::memory {
namespace {

using Action = SnapshotEntry::Action;

constexpr EnumName<Action> kActions[] = {
    {Action::alloc, "alloc"},
    {Action::free_requested, "free_requested"},
    {Action::free_completed, "free_completed"},
    {Action::segment_alloc, "segment_alloc"},
    {Action::segment_free, "segment_free"},
    {Action::segment_map, "segment_map"},
    {Action::segment_unmap, "segment_unmap"},
    {Action::oom, "oom"},
};

/// One JSON object of a list. Lists have millions of entries: this costs less than a Reader, which remembers keys that nobody asked for.
class Item {
 public:
  Item(const Json& json, const std::string& file, const std::string& list, std::size_t index) : json_(json), file_(file), list_(list), index_(index) {
    if (!json.is_object()) fail("", "expected an object");
  }

  [[nodiscard]] const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  [[nodiscard]] const Json& at(const char* key) const {
    const Json* found = find(key);
    if (!found) fail(key, "is missing");
    return *found;
  }
  [[nodiscard]] std::uint64_t address(const char* key) const {
    const Json& found = at(key);
    if (!found.is_number_integer() || (!found.is_number_unsigned() && found.get<std::int64_t>() < 0)) fail(key, "expected a whole number that is not negative");
    return found.get<std::uint64_t>();
  }
  [[nodiscard]] std::int64_t bytes(const char* key) const {
    const std::uint64_t value = address(key);
    if (value > static_cast<std::uint64_t>(kMaxBytes)) fail(key, std::to_string(value) + " bytes are more than 1 PiB");
    return static_cast<std::int64_t>(value);
  }
  /// A stream handle: any whole number, only its identity counts.
  [[nodiscard]] std::int64_t handle(const char* key) const {
    const Json& found = at(key);
    if (!found.is_number_integer()) fail(key, "expected a whole number");
    return found.is_number_unsigned() ? static_cast<std::int64_t>(found.get<std::uint64_t>()) : found.get<std::int64_t>();
  }
  [[nodiscard]] const std::string& text(const char* key) const {
    const Json& found = at(key);
    if (!found.is_string()) fail(key, "expected a text");
    return found.get_ref<const std::string&>();
  }
  [[nodiscard]] std::string pointer() const { return list_ + "/" + std::to_string(index_); }
  [[noreturn]] void fail(const std::string& key, const std::string& what) const { throw InputError(file_, pointer() + (key.empty() ? "" : "/" + key), what); }

 private:
  const Json& json_;
  const std::string& file_;
  const std::string& list_;
  std::size_t index_;
};

const Json& list(const Json& found, const std::string& file, const std::string& pointer) {
  if (!found.is_array()) throw InputError(file, pointer, "expected an array");
  return found;
}

int stream_of(const Item& item, SnapshotDevice& device) {
  constexpr std::size_t kMostStreams = 48;  // leaves some of the allocator's 64 for deferred frees
  const std::int64_t handle = item.handle("stream");
  auto& streams = device.streams;
  const auto found = std::find(streams.begin(), streams.end(), handle);
  if (found != streams.end()) return static_cast<int>(found - streams.begin());
  if (streams.size() == kMostStreams) item.fail("stream", "is the 49th stream of the device; at most 48 can be replayed");
  streams.push_back(handle);
  return static_cast<int>(streams.size() - 1);
}

/// `total`: bytes of all entries so far; with this limit no sum of them can overflow.
void read_entry(const Item& item, std::size_t place, SnapshotDevice& device, std::int64_t& total) {
  constexpr std::int64_t kMaxTotal = std::int64_t{1} << 62;
  const std::string& name = item.text("action");
  const auto* known = std::find_if(std::begin(kActions), std::end(kActions), [&](const auto& action) { return name == action.name; });
  if (known == std::end(kActions)) {
    if (name != "snapshot") ++device.unknown_actions[printable(name, 40)];  // "snapshot" marks the moment of the dump
    return;
  }
  SnapshotEntry entry{.action = known->value, .place = place};
  entry.address = item.address(entry.action == Action::oom ? "device_free" : "addr");
  entry.size = item.bytes("size");
  entry.stream = stream_of(item, device);
  total += entry.size;
  if (total > kMaxTotal) item.fail("size", "makes more than 4 EiB in all");
  device.entries.push_back(entry);
}

/// Blocks follow each other without a gap from the segment's address; older versions don't write their addresses.
void read_segment(const Item& segment, const std::string& file, SnapshotDevice& device) {
  device.reserved_at_end += segment.bytes("total_size");
  if (device.reserved_at_end > kMaxBytes) segment.fail("total_size", "makes more than 1 PiB of segments");
  const int stream = stream_of(segment, device);
  std::uint64_t address = segment.address("address");
  const std::string pointer = segment.pointer() + "/blocks";
  const Json& blocks = list(segment.at("blocks"), file, pointer);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Item block(blocks[i], file, pointer, i);
    const std::int64_t size = block.bytes("size");
    if (block.text("state") == "active_allocated") {
      device.live_at_end.push_back({address, block.find("requested_size") ? block.bytes("requested_size") : size, stream});
    }
    address += static_cast<std::uint64_t>(size);
  }
}

void read_segments(const Json& document, const std::string& file, std::vector<SnapshotDevice>& devices) {
  const auto found = document.find("segments");
  if (found == document.end()) return;
  for (SnapshotDevice& device : devices) device.has_segments = true;
  const std::string pointer = "/segments";
  const Json& segments = list(*found, file, pointer);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Item segment(segments[i], file, pointer, i);
    const std::uint64_t device = segment.address("device");
    if (device >= devices.size()) segment.fail("device", std::to_string(device) + " has no list in /device_traces");
    read_segment(segment, file, devices[device]);
  }
}

}  // namespace

std::vector<SnapshotDevice> snapshot_devices(const Json& document, const std::string& file) {
  const Json& traces = list(document.at("device_traces"), file, "/device_traces");
  std::vector<SnapshotDevice> devices(traces.size());
  for (std::size_t d = 0; d < traces.size(); ++d) {
    devices[d].pointer = "/device_traces/" + std::to_string(d);
    const Json& entries = list(traces[d], file, devices[d].pointer);
    devices[d].entries.reserve(entries.size());
    std::int64_t total = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) read_entry(Item(entries[i], file, devices[d].pointer, i), i, devices[d], total);
  }
  read_segments(document, file, devices);
  return devices;
}

}  // namespace stepcast::memory
