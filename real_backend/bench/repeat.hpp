// Repeats a measurement until its noise is small or its time is up. Test: tests/unit/host_bench_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace stepcast::real::bench {

/// Seconds.
struct Quartiles {
  double first = 0, median = 0, third = 0;
  std::int64_t repeats = 0;
  double mean = 0;
};
/// Quartiles by linear interpolation between the sorted values, of which there is at least one.
Quartiles quartiles(std::vector<double> seconds);

struct Effort {
  int warm_up = 3, least = 10, most = 2000;
  double seconds = 0.5;             // after which no further repetition begins
  double noise = 0.01;              // relative standard error of the median that is small enough
  std::function<void()> between{};  // called after each repetition
};

/// `once` returns the seconds of one repetition.
Quartiles repeat(const Effort& effort, const std::function<double()>& once);

}  // namespace stepcast::real::bench
