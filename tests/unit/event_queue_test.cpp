// Total order of events and the heap that keeps it. docs/execution.md, "Time".

#include "sim/event_queue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

using namespace stepcast;
using sim::EventKind;

TEST_CASE("events leave in order of time, then device before host, then insertion") {
  sim::EventQueue queue;
  queue.push(SimTime(5), EventKind::host, 1);
  queue.push(SimTime(5), EventKind::kernel_end, 2);
  queue.push(SimTime(3), EventKind::host, 3);
  queue.push(SimTime(5), EventKind::kernel_end, 4);
  std::vector<std::uint32_t> targets;
  while (!queue.empty()) targets.push_back(queue.pop().target());
  CHECK(targets == std::vector<std::uint32_t>{3, 2, 4, 1});
}

TEST_CASE("pops and pushes in any mixture leave the order total") {
  sim::EventQueue queue;
  std::set<std::pair<std::int64_t, std::uint32_t>> expected;
  std::uint64_t state = 7;
  std::int64_t now = 0;
  for (std::uint32_t i = 0; i < 50000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto choice = state >> 61;
    if (choice < 4 || expected.empty()) {
      const std::int64_t time = now + static_cast<std::int64_t>(state >> 40 & 0x3f);
      queue.push(SimTime(time), EventKind::kernel_end, i);
      expected.emplace(time, i);
    } else if (choice < 7) {
      const sim::Event event = queue.pop();
      REQUIRE(std::pair(event.time(), event.target()) == *expected.begin());
      now = event.time();
      expected.erase(expected.begin());
    } else {
      REQUIRE(queue.idle_until(SimTime(now + 8)) == (expected.begin()->first > now + 8));
    }
    REQUIRE(queue.empty() == expected.empty());
  }
}

TEST_CASE("the heap sorts ten thousand pseudo-random events") {
  sim::EventQueue queue;
  std::vector<std::pair<std::int64_t, std::uint32_t>> expected;
  std::uint64_t state = 42;
  for (std::uint32_t i = 0; i < 10000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto time = static_cast<std::int64_t>(state >> 54);
    queue.push(SimTime(time), EventKind::kernel_end, i);
    expected.emplace_back(time, i);
  }
  std::stable_sort(expected.begin(), expected.end(), [](auto a, auto b) { return a.first < b.first; });
  for (const auto& [time, target] : expected) {
    const sim::Event event = queue.pop();
    REQUIRE(event.time() == time);
    REQUIRE(event.target() == target);
  }
}
