// Works in whole nanoseconds. Test: tests/unit/chrome_writer_test.cpp.
#include "tests/support/chrome_check.hpp"

#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace stepcast::test {

namespace {

using nlohmann::json;
using Lane = std::pair<int, int>;

std::int64_t nanoseconds(const json& microseconds) { return std::llround(microseconds.get<double>() * 1000); }
Lane lane_of(const json& event) { return {event.at("pid").get<int>(), event.at("tid").get<int>()}; }

struct Point {
  int count = 0;
  Lane lane{};
  std::int64_t time = 0;
  void add(const json& event) { ++count, lane = lane_of(event), time = nanoseconds(event.at("ts")); }
  [[nodiscard]] bool same_place(const Point& other) const { return lane == other.lane && time == other.time; }
};

struct Checker {
  std::vector<std::string> violations;
  std::map<Lane, std::vector<std::int64_t>> open_ends;
  std::map<Lane, std::int64_t> last_begin;
  std::map<std::uint64_t, Point> launches, tails, heads, work;

  void require(bool holds, const json& event, const char* what) {
    if (!holds) violations.push_back(std::string(what) + ": " + event.dump());
  }

  void complete(const json& event) {
    const Lane lane = lane_of(event);
    const std::int64_t begin = nanoseconds(event.at("ts")), length = nanoseconds(event.at("dur"));
    require(!event.at("name").get<std::string>().empty(), event, "no name");
    require(length >= 0, event, "negative length");
    const auto [last, first_of_lane] = last_begin.try_emplace(lane, begin);
    require(first_of_lane || begin >= last->second, event, "begins before the event before it in its lane");
    last->second = begin;
    auto& ends = open_ends[lane];
    while (!ends.empty() && ends.back() <= begin) ends.pop_back();
    require(ends.empty() || begin + length <= ends.back(), event, "reaches out of the event around it");
    ends.push_back(begin + length);
    correlate(event);
  }

  void correlate(const json& event) {
    const std::string category = event.at("cat");
    const bool device = category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset";
    const bool correlated = event.contains("args") && event["args"].contains("correlation");
    if (device) require(correlated && event["args"]["correlation"] != 0, event, "device work without a correlation");
    if (!correlated) return;
    if (device) work[event["args"]["correlation"]].add(event);
    else if (category == "cuda_runtime") launches[event["args"]["correlation"]].add(event);
  }

  void event(const json& event) {
    const std::string phase = event.at("ph");
    if (phase == "X") complete(event);
    else if (phase == "s") tails[event.at("id")].add(event);
    else if (phase == "f") heads[event.at("id")].add(event), require(event.at("bp") == "e", event, "arrow not bound to the enclosing event");
  }

  void match(std::uint64_t id, const Point& item) {
    const auto complain = [&](const char* what) { violations.push_back(std::string(what) + ": correlation " + std::to_string(id)); };
    if (item.count != 1) complain("a correlation of several device events");
    if (launches[id].count != 1) complain("not exactly one launch");
    if (tails[id].count != 1 || heads[id].count != 1) complain("not exactly one arrow");
    if (!tails[id].same_place(launches[id])) complain("the arrow does not start at the launch");
    if (!heads[id].same_place(item)) complain("the arrow does not end at the work");
  }
};

}  // namespace

std::vector<std::string> check_chrome(const json& file) {
  Checker checker;
  for (const json& event : file.at("traceEvents")) checker.event(event);
  if (checker.tails.size() != checker.heads.size()) checker.violations.emplace_back("arrows with one end");
  for (const auto& [id, item] : checker.work) checker.match(id, item);
  return checker.violations;
}

}  // namespace stepcast::test
