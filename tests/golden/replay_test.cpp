// `stepcast replay` as a user meets it: tables, JSON, --check with its exit codes, refused files. docs/commands.md, "replay".
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/paths.hpp"
#include "support/place.hpp"
#include "support/snapshot_json.hpp"

using Json = nlohmann::ordered_json;
using stepcast::test::Outcome, stepcast::test::Place, stepcast::test::has, stepcast::test::one_line;
using Snapshot = stepcast::test::SnapshotJson;

namespace {

constexpr std::int64_t kMiB = 1 << 20;
const std::string kData = stepcast::test::source_dir() + "/tests/unit/data/snapshot/";

/// 60 MiB, freed; 66 MiB: two segments, the first of them idle.
std::string growing() {
  Snapshot s;
  s.add("segment_alloc", 1000, 60 * kMiB).alloc(1000, 60 * kMiB).free(1000, 60 * kMiB).add("segment_alloc", 2000, 66 * kMiB).alloc(2000, 66 * kMiB);
  return s.document().dump();
}

}  // namespace

TEST_CASE("peaks of a snapshot, as text and JSON") {
  const Place place;
  place.file("s.json", growing());
  const Outcome text = place.run("replay s.json");
  REQUIRE_MESSAGE(text.code == 0, text.err);
  CHECK(has(text.out, "126.0 MiB"));
  CHECK(has(text.out, "no limit of memory (set /allocator/device_memory)"));
  const Outcome r = place.run("replay s.json --json");
  REQUIRE(r.code == 0);
  const Json history = Json::parse(r.out)["histories"][0];
  CHECK(history["peak"]["reserved"] == 126 * kMiB);
  CHECK(history["peak"]["allocated"] == 66 * kMiB);
  CHECK(history["fragmentation"].get<double>() == doctest::Approx(60.0 / 126));
}

TEST_CASE("other settings: expandable segments need no second segment, a smaller card a retry, a tiny one fails") {
  const Place place;
  place.file("s.json", growing());
  const auto history = [&](const std::string& set) {
    const Outcome r = place.run("replay s.json --json --set '" + set + "'");
    REQUIRE_MESSAGE(r.code == 0, r.err);
    return Json::parse(r.out)["histories"][0];
  };
  CHECK(history("/allocator/expandable_segments=true")["peak"]["reserved"] == 80 * kMiB);  // 3 pages of 20 MiB, then a fourth
  CHECK(history("/allocator/device_memory=100 MiB")["end"]["retries"] == 1);
  CHECK(history("/allocator/device_memory=100 MiB")["end"]["reserved"] == 66 * kMiB);
  const Json failed = history("/allocator/device_memory=62 MiB");
  CHECK(failed["end"]["ooms"] == 1);
  CHECK(failed["failed"][0]["bytes"] == 66 * kMiB);
  CHECK(has(place.run("replay s.json --set '/allocator/device_memory=62 MiB'").out, "out of memory at operation 2 (malloc of 69206016 bytes, id 1, stream 0)"));
}

TEST_CASE("--check: exit code 0 where the counters agree, 1 with the first difference where they don't") {
  const Place place;
  place.file("s.json", growing());
  const Outcome clean = place.run("replay s.json --check");
  CHECK(clean.code == 0);
  CHECK(clean.out == "clean: 2 operations of 1 history give the recorded counters\n");
  const Outcome differs = place.run("replay s.json --check --set /allocator/expandable_segments=true");
  CHECK(differs.code == 1);
  CHECK(differs.out == "device 1: operation 2 (malloc of 69206016 bytes, id 1, stream 0; /device_traces/1/5): reserved: expected 132120576, got 83886080\n");
  const Outcome json = place.run("replay s.json --check --json --set /allocator/expandable_segments=true");
  CHECK(json.code == 1);
  CHECK(Json::parse(json.out)["check"]["difference"]["field"] == "reserved");
  CHECK(Json::parse(json.out)["check"]["difference"]["got"] == 80 * kMiB);

  Snapshot middle;
  middle.free(1000, 512).add("segment_alloc", 5000, 2 * kMiB).alloc(5000, 512);
  place.file("middle.json", middle.document().dump());
  const Outcome nothing = place.run("replay middle.json --check");
  CHECK(nothing.code == 2);
  CHECK(one_line(nothing.err));
  CHECK(has(nothing.err, "middle.json: /device_traces/1: has nothing to check against"));
}

TEST_CASE("pickles are read as they are") {
  const Place place;
  for (const char* name : {"protocol2.pickle", "protocol4.pickle", "protocol5.pickle", "snapshot.json"}) {
    const Outcome r = place.run("replay '" + (kData + std::string(name)) + "' --check");
    CHECK_MESSAGE(r.code == 0, name << ": " << r.err);
  }
}

TEST_CASE("what is no history, or no allocator setting, is exit code 2 and one line that names it") {
  const Place place;
  place.file("s.json", growing());
  place.file("attack.pickle", std::string("\x80\x04"
                                          "cos\nsystem\n(X\x02\x00\x00\x00idtR.",
                                          24));
  place.file("cut.json", growing().substr(0, 100));
  place.file("scenario.json", R"({"model": {"layers": 4}})");
  place.file("empty.json", "");
  place.file("none.json", R"({"device_traces": [[], []]})");
  place.file("zip.pt", "PK\x03\x04....");
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    const Outcome r = place.run("replay " + arguments);
    CHECK_MESSAGE(r.code == 2, arguments);
    CHECK_MESSAGE(one_line(r.err), arguments << ": " << r.err);
    CHECK_MESSAGE(has(r.err, part), arguments << ": " << r.err);
    CHECK(r.out.empty());
  };
  refused("attack.pickle", "attack.pickle: byte 2: the pickle holds Python objects (opcode 0x63), which are never loaded");
  refused("cut.json", "cut.json: line 1, column ");
  refused("scenario.json", "scenario.json: is no allocator history");
  refused("empty.json", "empty.json: is empty");
  refused("none.json", "none.json: holds no operation");
  refused("zip.pt", "zip.pt: is an archive of torch.save");
  refused(".", "is a directory");
  refused("s.json --set /allocator/max_split_sise=none", "--set: /allocator/max_split_sise: unknown key");
  refused("s.json --set /batch/micro_batch=1", "--set: /batch: unknown key");
  refused("s.json --set '/allocator/max_split_size=5 MiB'", "must be above 20 MiB");
  refused("s.json --set /allocator/roundup_power2_divisions=3", "must be a power of two");
}

TEST_CASE("the recorded traces of another allocator's author are clean") {
  const Place place;
  const std::string traces = stepcast::test::source_dir() + "/../shared/reference/alloc_traces.json";
  if (!std::filesystem::exists(traces)) {
    MESSAGE("skipped: no traces at " << traces);
    return;
  }
  const Outcome r = place.run("replay '" + traces + "' --check");
  CHECK_MESSAGE(r.code == 0, r.out << r.err);
  CHECK(place.run("replay '" + traces + "' --check --set /allocator/roundup_power2_divisions=16").code == 1);
}
