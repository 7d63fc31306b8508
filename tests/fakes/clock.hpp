// Vector clocks: what is known to be done, by stream of a GPU. Component 0 is the host's.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace stepcast::fakes {

inline constexpr std::size_t kSlots = 15;

/// The n-th thing that slot s did; 0: nothing.
class Epoch {
 public:
  Epoch() = default;
  Epoch(std::size_t slot, std::uint32_t time) : bits_((static_cast<std::uint32_t>(slot + 1) << 28U) | time) {}
  [[nodiscard]] bool none() const { return bits_ == 0; }
  [[nodiscard]] std::size_t slot() const { return (bits_ >> 28U) - 1; }
  [[nodiscard]] std::uint32_t time() const { return bits_ & 0xfffffffU; }

 private:
  std::uint32_t bits_ = 0;
};

struct Clock {
  std::array<std::uint32_t, kSlots> times{};

  void join(const Clock& other) {
    for (std::size_t i = 0; i < kSlots; ++i) times[i] = std::max(times[i], other.times[i]);
  }
  [[nodiscard]] bool knows(Epoch epoch) const { return epoch.none() || epoch.time() <= times[epoch.slot()]; }
};

}  // namespace stepcast::fakes
