// Simulated time: signed 64-bit picoseconds (106 days of range), so that sums are exact and equal on every machine.
// `to_sim_time` is the only place where a cost in floating point becomes a time. Decision: docs/adr/0001-integer-picoseconds.md.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <ratio>
#include <stdexcept>

#include "hw_models/units.hpp"

namespace stepcast {

using SimTime = std::chrono::duration<std::int64_t, std::pico>;

/// Rounds to the nearest picosecond. Throws std::domain_error on a negative, infinite, NaN or unrepresentable duration.
inline SimTime to_sim_time(Seconds duration) {
  const double picoseconds = duration.si() * 1e12;
  if (!(picoseconds >= 0) || picoseconds > 9.0e18) throw std::domain_error("a duration must be finite, not negative and below 104 days");
  return SimTime(static_cast<std::int64_t>(std::llround(picoseconds)));
}

inline Seconds to_seconds(SimTime time) { return Seconds(static_cast<double>(time.count()) * 1e-12); }

}  // namespace stepcast
