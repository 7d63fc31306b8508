// PyTorch memory snapshots as histories: frees at once and deferred, flushes, failed requests, histories that begin in the middle.
// Rules: docs/caching_allocator.md, "Histories".
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "memory/history.hpp"
#include "memory/sizes.hpp"
#include "support/snapshot_json.hpp"

using namespace stepcast;
using namespace stepcast::memory;
using nlohmann::json;
using Snapshot = test::SnapshotJson;
using Kind = ReplayOp::Kind;

namespace {

constexpr std::int64_t kGiB = 1024 * kMiB;

History read(const json& document, bool limit_given = false) {
  std::vector<History> histories = parse_histories(document.dump(), "s.json", limit_given);
  REQUIRE(histories.size() == 1);
  return histories.front();
}
History read(const Snapshot& snapshot, bool limit_given = false) { return read(snapshot.document(), limit_given); }

Replay run(const History& history, std::int64_t device_bytes = kMaxBytes) { return replay(history, history.settings, device_bytes, "s.json"); }

std::vector<Kind> kinds(const History& history) {
  std::vector<Kind> found;
  for (const ReplayOp& op : history.ops) found.push_back(op.kind);
  return found;
}

}  // namespace

TEST_CASE("a history from the start of a run: counters after each allocation are those of its segments") {
  Snapshot s;
  s.add("segment_alloc", 1000, 20 * kMiB).alloc(1000, 3 * kMiB - 100).alloc(1000 + 3 * kMiB, 5 * kMiB);
  s.free(1000, 3 * kMiB - 100).add("segment_alloc", 90'000'000, 30 * kMiB, 77).alloc(90'000'000, 29 * kMiB, 77);
  const History history = read(s);
  CHECK(history.id == "device 1");
  CHECK(history.streams == 2);
  CHECK(kinds(history) == std::vector<Kind>{Kind::malloc, Kind::malloc, Kind::free, Kind::malloc});
  REQUIRE(history.recorded.size() == 3);
  CHECK(history.recorded[2].counters.reserved == 50 * kMiB);
  CHECK(history.recorded[2].counters.requested == 34 * kMiB);
  const Replay replayed = run(history);
  CHECK(!first_difference(history, replayed));
  CHECK(replayed.peak.reserved == 50 * kMiB);

  s.entries()[0]["size"] = 22 * kMiB;  // not the segment that the rules give
  const auto difference = first_difference(read(s), replayed);
  REQUIRE(difference);
  CHECK(difference->field == std::string("reserved"));
  CHECK(difference->place == 1);  // of the allocation in the file
  CHECK(difference->expected == 22 * kMiB);
}

TEST_CASE("a deferred free keeps its memory until it is completed") {
  Snapshot s;
  s.add("segment_alloc", 1000, 60 * kMiB, 5).alloc(1000, 60 * kMiB, 5).add("free_requested", 1000, 60 * kMiB, 5);
  s.add("segment_alloc", 2000, 60 * kMiB, 5).alloc(2000, 60 * kMiB, 5);  // the first block can't be used yet
  s.add("free_completed", 1000, 60 * kMiB, 5).alloc(1000, 60 * kMiB, 5);
  const History history = read(s);
  CHECK(kinds(history) == std::vector<Kind>{Kind::malloc, Kind::free_deferred, Kind::malloc, Kind::free_completed, Kind::malloc});
  const Replay replayed = run(history);
  CHECK(!first_difference(history, replayed));
  CHECK(replayed.after[1].allocated == 0);
  CHECK(replayed.after[1].active == 60 * kMiB);
  CHECK(replayed.after[4].reserved == 120 * kMiB);
}

TEST_CASE("deferred frees that complete in another order than they were asked for") {
  Snapshot s;
  for (const std::uint64_t address : {1000u, 2000u}) s.add("segment_alloc", address, 60 * kMiB).alloc(address, 60 * kMiB);
  s.add("free_requested", 1000, 60 * kMiB).add("free_requested", 2000, 60 * kMiB);
  s.add("segment_alloc", 3000, 2 * kMiB).alloc(3000, 512);
  s.add("free_completed", 2000, 60 * kMiB).alloc(2000, 60 * kMiB);  // a cache hit although the older free still waits
  const History history = read(s);
  CHECK(history.streams == 3);
  CHECK(!first_difference(history, run(history)));
}

TEST_CASE("on a smaller card a flush finishes deferred frees; completing them later does nothing") {
  Snapshot s;
  s.add("segment_alloc", 1000, 60 * kMiB).alloc(1000, 60 * kMiB).add("free_requested", 1000, 60 * kMiB);
  s.add("segment_alloc", 2000, 60 * kMiB).alloc(2000, 60 * kMiB).add("free_requested", 2000, 60 * kMiB);
  s.add("free_completed", 1000, 60 * kMiB).add("segment_alloc", 3000, 2 * kMiB).alloc(3000, 512);
  const Replay replayed = run(read(s), 100 * kMiB);
  CHECK(replayed.after[2].retries == 1);
  CHECK(replayed.after.back().active == 60 * kMiB + 512);  // the second free is not completed by the first one's entry
}

TEST_CASE("memory that goes back outside an allocation is an empty_cache; within one the replay decides, if it knows the limit") {
  Snapshot s;
  s.add("segment_alloc", 1000, 60 * kMiB).alloc(1000, 60 * kMiB).free(1000, 60 * kMiB).add("segment_free", 1000, 60 * kMiB);
  s.add("segment_alloc", 2000, 70 * kMiB).alloc(2000, 70 * kMiB);
  CHECK(kinds(read(s)) == std::vector<Kind>{Kind::malloc, Kind::free, Kind::empty_cache, Kind::malloc});
  CHECK(read(s).warnings.size() == 1);
  CHECK(kinds(read(s, true)) == std::vector<Kind>{Kind::malloc, Kind::free, Kind::malloc});
  CHECK(!first_difference(read(s), run(read(s))));
  const Replay flushed = run(read(s, true), 100 * kMiB);
  CHECK(flushed.after.back().retries == 1);
  CHECK(!first_difference(read(s, true), flushed));

  Snapshot emptied;
  emptied.add("segment_alloc", 1000, 60 * kMiB).alloc(1000, 60 * kMiB).free(1000, 60 * kMiB).add("segment_free", 1000, 60 * kMiB);
  CHECK(kinds(read(emptied, true)) == std::vector<Kind>{Kind::malloc, Kind::free, Kind::empty_cache});
}

TEST_CASE("a failed request tells the limit: what was reserved and what the device had left") {
  Snapshot s;
  s.add("segment_alloc", 1000, 60 * kMiB).alloc(1000, 60 * kMiB).add("oom", 15 * kMiB, 30 * kMiB);
  const History history = read(s);
  CHECK(history.device_bytes == 75 * kMiB);
  const Replay replayed = run(history, *history.device_bytes);
  CHECK(replayed.oom == std::vector<std::size_t>{1});
  CHECK(!first_difference(history, replayed));
  CHECK(run(history, 2 * kGiB).oom.empty());
  CHECK(run(history, 2 * kGiB).after.back().allocated == 60 * kMiB);  // what would have become of it isn't known: freed at once
}

TEST_CASE("a history that begins in the middle: older allocations come first, and nothing can be checked") {
  Snapshot s;
  s.free(5000, 3 * kMiB).add("free_completed", 9000, 512).add("segment_alloc", 1000, 20 * kMiB).alloc(1000, 4 * kMiB);
  json document = s.document();
  document["segments"] = json::parse(R"([
    {"device": 1, "address": 1000, "total_size": 20971520, "stream": 0, "blocks": [{"size": 4194304, "state": "active_allocated"}, {"size": 16777216, "state": "inactive"}]},
    {"device": 1, "address": 100000000, "total_size": 20971520, "stream": 3,
     "blocks": [{"size": 8388608, "state": "inactive"}, {"size": 2097152, "requested_size": 2000000, "state": "active_allocated"}, {"size": 10485760, "state": "inactive"}]}])");
  const History history = read(document);
  CHECK(kinds(history) == std::vector<Kind>{Kind::malloc, Kind::malloc, Kind::free, Kind::malloc});
  CHECK(history.ops[0].size == 3 * kMiB);   // freed first thing
  CHECK(history.ops[1].size == 2'000'000);  // never freed
  CHECK(history.recorded.empty());
  CHECK(history.why_nothing_recorded.find("middle") != std::string::npos);
  CHECK(history.warnings.size() == 2);
}

TEST_CASE("settings of the recorded run; unknown actions are counted, unknown keys left alone") {
  Snapshot s;
  s.add("segment_alloc", 1000, 20 * kMiB).add("user_defined", 0, 0).alloc(1000, 4 * kMiB).add("snapshot", 0, 0);
  json document = s.document();
  document["external_annotations"] = json::array();
  document["allocator_settings"] = json::parse(R"({"PYTORCH_CUDA_ALLOC_CONF": "x", "max_split_size": 536870912, "garbage_collection_threshold": 0.5,
    "expandable_segments": true, "roundup_power2_divisions": {"1": 4, "2": 4, ">": 4}})");
  const History history = read(document);
  CHECK(history.settings.max_split_size == 512 * kMiB);
  CHECK(history.settings.expandable_segments);
  CHECK(history.settings.garbage_collection_threshold == 0.5);
  CHECK(history.settings.roundup_power2_divisions == 4);
  REQUIRE(history.warnings.size() == 1);
  CHECK(history.warnings[0] == "1 entries of the unknown action \"user_defined\" were left out");

  document["allocator_settings"]["max_split_size"] = -1;
  document["allocator_settings"]["roundup_power2_divisions"][">"] = 8;
  CHECK(!read(document).settings.max_split_size);
  CHECK(read(document).settings.roundup_power2_divisions == 0);
  CHECK(read(document).warnings.size() == 2);
}

TEST_CASE("bad snapshots are refused with file and place") {
  const auto refused = [](const json& document, const std::string& message) {
    try {
      parse_histories(document.dump(), "s.json");
      FAIL_CHECK(message << ": accepted");
    } catch (const InputError& error) { CHECK(std::string(error.what()).substr(0, message.size()) == message); }
  };
  const auto with = [](const char* key, const json& value) {
    Snapshot s;
    s.alloc(1000, 512);
    s.entries()[0][key] = value;
    return s.document();
  };
  refused(with("addr", "x"), "s.json: /device_traces/1/0/addr: expected a whole number that is not negative");
  refused(with("addr", -4), "s.json: /device_traces/1/0/addr: expected a whole number that is not negative");
  refused(with("size", 1.5), "s.json: /device_traces/1/0/size: expected a whole number that is not negative");
  refused(with("size", 1LL << 51), "s.json: /device_traces/1/0/size: 2251799813685248 bytes are more than 1 PiB");
  refused(with("stream", nullptr), "s.json: /device_traces/1/0/stream: expected a whole number");
  refused(with("action", 3), "s.json: /device_traces/1/0/action: expected a text");
  refused(Snapshot().alloc(1000, 512).alloc(1000, 512).document(), "s.json: /device_traces/1/1: address 1000 is handed out twice without a free");
  refused(Snapshot().alloc(1000, 512).add("free_requested", 1000, 512).alloc(1000, 512).document(),
          "s.json: /device_traces/1/2: address 1000 is handed out before its free is completed");
  refused(Snapshot().add("free_requested", 1000, 512).add("free_requested", 1000, 512).document(), "s.json: /device_traces/1/1: address 1000 is freed twice");
  refused({{"device_traces", 5}}, "s.json: /device_traces: expected an array");
  refused({{"device_traces", {5}}}, "s.json: /device_traces/0: expected an array");
  refused({{"device_traces", {{5}}}}, "s.json: /device_traces/0/0: expected an object");
  refused({{"device_traces", json::array()}}, "s.json: holds no operation");
  json document = Snapshot().alloc(1000, 512).document();
  document["segments"] = {{{"device", 2}}};
  refused(document, "s.json: /segments/0/device: 2 has no list in /device_traces");
  document.erase("segments");
  document["allocator_settings"] = {{"expandable_segments", 1}};
  refused(document, "s.json: /allocator_settings/expandable_segments: expected true or false, found a number");
  Snapshot many;
  for (int stream = 0; stream < 49; ++stream) many.alloc(1000 + static_cast<std::uint64_t>(stream), 512, 1000 * stream);
  refused(many.document(), "s.json: /device_traces/1/48/stream: is the 49th stream");
}
