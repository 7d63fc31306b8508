// See device.hpp.
#include "real_backend/device.hpp"

#include <chrono>

namespace stepcast::real {
namespace {

std::int64_t nanoseconds() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Clock::Clock() : start_(nanoseconds()) {}

SimTime Clock::now() const { return SimTime((nanoseconds() - start_) * 1000); }

}  // namespace stepcast::real
