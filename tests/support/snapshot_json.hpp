// Writes the dictionary of torch.cuda.memory._snapshot() by hand, entry by entry, for tests of its reader.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace stepcast::test {

class SnapshotJson {
 public:
  SnapshotJson& add(const std::string& action, std::uint64_t address, std::int64_t size, std::int64_t stream = 0) {
    entries_.push_back({{"action", action},
                        {action == "oom" ? "device_free" : "addr", address},
                        {"size", size},
                        {"stream", stream},
                        {"time_us", ++time_},
                        {"frames", nlohmann::json::array()}});
    return *this;
  }
  SnapshotJson& alloc(std::uint64_t address, std::int64_t size, std::int64_t stream = 0) { return add("alloc", address, size, stream); }
  /// A free that is complete at once.
  SnapshotJson& free(std::uint64_t address, std::int64_t size) { return add("free_requested", address, size).add("free_completed", address, size); }
  nlohmann::json& entries() { return entries_; }
  [[nodiscard]] nlohmann::json document() const { return {{"device_traces", {nlohmann::json::array(), entries_}}}; }

 private:
  nlohmann::json entries_ = nlohmann::json::array();
  std::int64_t time_ = 0;
};

}  // namespace stepcast::test
