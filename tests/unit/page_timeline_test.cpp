// Spans that are too short to be seen are joined, and nothing is lost by it. docs/page.md, "Timeline".
#include <doctest/doctest.h>

#include "cli/page/timeline.hpp"

using namespace stepcast::cli;

TEST_CASE("neighbours are joined when they are short together, or short and of one kind") {
  // fine = 10: the first two are 8 together; the third is long.
  const auto out = joined({{0, 3, 0, 0}, {4, 8, 1, 1}, {20, 50, 0, 2}}, 10);
  REQUIRE(out.size() == 2);
  CHECK(out[0].end == 8);
  CHECK(out[0].count == 2);
  CHECK(out[0].busy == 7);
  CHECK(out[0].kind == 1);  // of the longest
  CHECK(out[0].name == 1);
  CHECK(out[1].begin == 20);
  CHECK(out[1].busy == 30);
}

TEST_CASE("a run of short spans of one kind is one, as long as it is dense") {
  std::vector<LaneSpan> spans;
  for (std::int64_t i = 0; i < 100; ++i) spans.push_back({i * 8, i * 8 + 5, 0, static_cast<std::uint32_t>(i)});
  spans.push_back({1000, 1005, 0, 0});  // 205 behind the last
  const auto out = joined(spans, 10);
  REQUIRE(out.size() == 2);
  CHECK(out[0].busy == 500);
  CHECK(out[0].count == 100);
  CHECK(out[0].end == 797);
}

TEST_CASE("long spans keep their names, and kinds apart") {
  CHECK(joined({{0, 20, 0, 0}, {20, 40, 0, 1}}, 10).size() == 2);
  CHECK(joined({{0, 9, 0, 0}, {9, 18, 1, 1}}, 10).size() == 2);
  CHECK(joined({}, 10).empty());
}

TEST_CASE("however many spans there are, their number is bounded by the timeline's parts") {
  std::vector<LaneSpan> spans;
  std::uint32_t state = 1;
  std::int64_t at = 0, busy = 0;
  while (at < 1'000'000) {
    state = state * 1664525 + 1013904223;
    const std::int64_t length = 1 + (state >> 28);
    spans.push_back({at, at + length, state >> 30, 0});
    busy += length;
    at += length + ((state >> 20) & 3);
  }
  const auto out = joined(spans, 1000);
  CHECK(out.size() <= 2 * 1000 + 2);
  std::int64_t kept = 0, count = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    kept += out[i].busy;
    count += out[i].count;
    if (i > 0) CHECK(out[i].begin >= out[i - 1].end);
  }
  CHECK(kept == busy);
  CHECK(count == static_cast<std::int64_t>(spans.size()));
}

TEST_CASE("spans are cut to the timeline, lanes and their layers are apart") {
  Timeline timeline(100, 1'000'000);
  timeline.open_lane("empty");
  timeline.add(0, 100, "kind", "before it");
  CHECK(timeline.lane_is_empty());
  timeline.drop_lane();
  timeline.open_lane("host");
  timeline.add(50, 600'100, "work", "a");
  timeline.add(300'100, 2'000'000, "wait", "b", 1);
  nlohmann::ordered_json section;
  timeline.write(section);
  CHECK(section["lanes"].size() == 1);
  CHECK(section["lanes"][0]["items"].dump() == "[[0,600000,0,0,1,600000],[300000,700000,1,1,1,700000]]");
  CHECK(section["kinds"].dump() == "[\"work\",\"wait\"]");
}
