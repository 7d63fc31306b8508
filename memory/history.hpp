// Recorded allocator histories: the calls, and the counters that were recorded with them. Three kinds of file: traces of operations, PyTorch's memory snapshot
// as JSON, and the pickle of it that torch.cuda.memory._dump_snapshot writes (read without executing anything).
// docs/caching_allocator.md, "Histories"; tests: tests/unit/history_test.cpp, tests/unit/snapshot_test.cpp; fuzzed by tests/fuzz/history.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memory/replay.hpp"

namespace stepcast::memory {

struct CounterName {
  const char* name;
  std::int64_t Statistics::*value;
};
/// Names of the counters in files and reports.
inline constexpr std::array<CounterName, 10> kCounters{{{"allocated", &Statistics::allocated},
                                                        {"active", &Statistics::active},
                                                        {"reserved", &Statistics::reserved},
                                                        {"inactive_split", &Statistics::inactive_split},
                                                        {"requested", &Statistics::requested},
                                                        {"segments", &Statistics::segments},
                                                        {"device_mallocs", &Statistics::device_mallocs},
                                                        {"device_frees", &Statistics::device_frees},
                                                        {"retries", &Statistics::retries},
                                                        {"ooms", &Statistics::ooms}}};

/// Counters recorded after an operation.
struct Recorded {
  std::size_t op = 0;
  Statistics counters;
};

struct History {
  std::string id;
  Settings settings;                         // of the recorded run
  std::optional<std::int64_t> device_bytes;  // that the pool could reserve; absent where the file doesn't tell
  int streams = 1;
  std::vector<ReplayOp> ops;
  std::string pointer;               // JSON pointer of what `places` count
  std::vector<std::size_t> places;   // of each op in the file; empty: op i is entry i
  std::vector<std::size_t> fields;   // what of kCounters was recorded
  std::vector<Recorded> recorded;    // empty: nothing to compare with
  std::string why_nothing_recorded;  // said when a comparison is asked for
  std::vector<std::string> warnings;
};

inline constexpr std::size_t kMaxHistoryBytes = std::size_t{256} << 20;

/// At least one history, each with at least one operation. `limit_given`: the replay will know how much the pool may reserve, so that memory which a snapshot
/// shows going back within an allocation is left to the replay. Throws InputError.
std::vector<History> read_histories(const std::string& path, bool limit_given = false);
/// The same for the content of a file; `file` is its name in messages.
std::vector<History> parse_histories(std::string_view content, const std::string& file, bool limit_given = false);

/// Runs the history under `settings` in a pool of `device_bytes`. Throws InputError for operations that contradict each other.
Replay replay(const History& history, const Settings& settings, std::int64_t device_bytes, const std::string& file);

struct Difference {
  std::size_t op = 0, place = 0;  // index of the operation, and where in the file it stands
  const char* field = "";
  std::int64_t expected = 0, got = 0;
};
/// The first operation whose counters are not the recorded ones, and of these the first that differs.
std::optional<Difference> first_difference(const History& history, const Replay& replayed);

/// "malloc of 31552404 bytes, id 3, stream 0".
std::string text_of(const ReplayOp& op);

}  // namespace stepcast::memory
