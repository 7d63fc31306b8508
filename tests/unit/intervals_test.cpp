// Interval sets against hand sums and against a bitmap of small random cases.
#include "trace/intervals.hpp"

#include <doctest/doctest.h>

#include <bitset>
#include <cstddef>
#include <random>

using namespace stepcast;
using namespace stepcast::trace;

namespace {

constexpr std::size_t kRange = 64;
using Bits = std::bitset<kRange>;

Interval at(std::int64_t begin, std::int64_t end) { return {SimTime(begin), SimTime(end)}; }

Bits bits(const std::vector<Interval>& intervals) {
  Bits out;
  for (const auto& interval : intervals) {
    for (auto t = interval.begin.count(); t < interval.end.count(); ++t) out.set(static_cast<std::size_t>(t));
  }
  return out;
}

std::int64_t count(const Bits& set) { return static_cast<std::int64_t>(set.count()); }

bool canonical(const Intervals& set) {
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (set[i].begin >= set[i].end || (i > 0 && set[i - 1].end >= set[i].begin)) return false;
  }
  return true;
}

std::vector<Interval> random_intervals(std::mt19937& random) {
  std::vector<Interval> out(random() % 12);
  for (auto& interval : out) {
    const auto begin = static_cast<std::int64_t>(random() % kRange);
    interval = at(begin, std::min<std::int64_t>(kRange, begin + static_cast<std::int64_t>(random() % 9) - 1));
  }
  return out;
}

}  // namespace

TEST_CASE("merge joins what overlaps or touches and drops what is empty") {
  CHECK(merge({at(5, 7), at(1, 3), at(3, 4), at(6, 9), at(2, 2), at(8, 6)}) == Intervals{at(1, 4), at(5, 9)});
  CHECK(merge({at(2, 3), at(0, 10)}) == Intervals{at(0, 10)});
  CHECK(merge({}).empty());
}

TEST_CASE("subtract leaves the parts beside each hole") {
  CHECK(subtract({at(0, 10), at(20, 30)}, {at(2, 4), at(8, 22), at(29, 40)}) == Intervals{at(0, 2), at(4, 8), at(22, 29)});
  CHECK(length(subtract({at(0, 10)}, {at(0, 10)})) == SimTime(0));
}

TEST_CASE("set operations agree with a bitmap on 2,000 random pairs") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const auto left = random_intervals(random), right = random_intervals(random);
    const Intervals a = merge(left), b = merge(right);
    const Bits x = bits(left), y = bits(right);
    REQUIRE(bits(a) == x);
    REQUIRE(bits(unite(a, b)) == (x | y));
    REQUIRE(bits(intersect(a, b)) == (x & y));
    REQUIRE(bits(subtract(a, b)) == (x & ~y));
    REQUIRE(overlap(a, b).count() == count(x & y));
    REQUIRE(length(a).count() == count(x));
    const bool all_canonical = canonical(a) && canonical(unite(a, b)) && canonical(intersect(a, b)) && canonical(subtract(a, b));
    REQUIRE(all_canonical);
  }
}
