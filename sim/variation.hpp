// What makes ranks and steps differ: noise of kernels, host calls and collectives, ranks of unequal speed, pauses of the host. All of it is a function of
// (seed, rank, op, purpose); without any, nothing is drawn and results are those of equal ranks. docs/models.md, "Variation". Test: tests/unit/variation_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hw_models/sim_time.hpp"
#include "sim/draws.hpp"

namespace stepcast::sim {

/// Pauses of the host thread. `regular`: every `period`, at a phase of each rank's own (Python's collector runs after so many allocations); `together`: all ranks at
/// the same times; `random`: distances between pauses are uniform in [0, 2 x period).
struct Pauses {
  enum class Kind : std::uint8_t { regular, together, random };
  SimTime period{}, length{};  // zero period: no pauses
  Kind kind = Kind::regular;
};

/// A rank whose times are longer by these ratios.
struct SlowRank {
  std::int32_t rank = 0;
  double compute = 1, host = 1, network = 1;  // kernels; host work; collectives that use its network adapter
};

struct VariationSettings {
  std::uint64_t seed = 0;
  double kernel = 0, host = 0, collective = 0;  // standard deviation of the logarithm of each time
  double rank_speed = 0;                        // the same of the speed of each rank's kernels, constant over the run
  std::array<Pauses, 2> pauses{};
  std::vector<SlowRank> slow_ranks;
};

/// One rank's share of it.
struct RankVariation {
  Draws kernel, host;
  std::array<Draws, 2> pause;
  Factor compute_factor = kOne, host_factor = kOne, network_factor = kOne;
  std::array<SimTime, 2> next_pause{};
  std::array<std::uint64_t, 2> pauses_drawn{};
};

class Variation {
 public:
  explicit Variation(const VariationSettings& settings);
  /// False: every time is as listed.
  [[nodiscard]] bool on() const { return on_; }
  [[nodiscard]] RankVariation of_rank(std::int32_t rank) const;

  /// Times of one op of one step: `op` is its number in the program, `step` counts from 0.
  [[nodiscard]] SimTime kernel_time(const RankVariation& rank, SimTime listed, std::uint32_t step, std::uint32_t op) const {
    return scaled(scaled(listed, rank.compute_factor), kernel_(rank.kernel(number(step, op))));
  }
  [[nodiscard]] SimTime host_time(const RankVariation& rank, SimTime listed, std::uint32_t step, std::uint32_t op) const {
    return scaled(scaled(listed, rank.host_factor), host_(rank.host(number(step, op))));
  }
  /// `group` and `sequence` name the collective; `network_factor` is that of the slowest member, or one where the network is not used.
  [[nodiscard]] SimTime collective_time(SimTime listed, Factor network_factor, std::uint32_t group, std::uint32_t sequence) const {
    if (!collective_.on()) return scaled(listed, network_factor);
    return scaled(scaled(listed, network_factor), collective_(Draws(settings_.seed, Purpose::collective, group)(sequence)));
  }
  /// Length of the pauses that are due when the host of `rank` makes a call at `now`; zero for none.
  [[nodiscard]] SimTime pause(RankVariation& rank, SimTime now) const;

 private:
  static std::uint64_t number(std::uint32_t step, std::uint32_t op) { return std::uint64_t{step} << 32 | op; }
  [[nodiscard]] SimTime distance(RankVariation& rank, std::size_t kind) const;

  const VariationSettings& settings_;
  bool on_;
  Spread kernel_, host_, collective_, rank_speed_;
};

}  // namespace stepcast::sim
