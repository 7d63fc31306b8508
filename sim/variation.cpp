// See variation.hpp.
#include "sim/variation.hpp"

namespace stepcast::sim {

namespace {

bool varies(const VariationSettings& s) {
  const bool pauses = s.pauses[0].period > SimTime{} || s.pauses[1].period > SimTime{};
  return s.kernel > 0 || s.host > 0 || s.collective > 0 || s.rank_speed > 0 || pauses || !s.slow_ranks.empty();
}

}  // namespace

Variation::Variation(const VariationSettings& settings)
    : settings_(settings),
      on_(varies(settings)),
      kernel_(settings.kernel),
      host_(settings.host),
      collective_(settings.collective),
      rank_speed_(settings.rank_speed) {}

RankVariation Variation::of_rank(std::int32_t rank) const {
  const auto owner = static_cast<std::uint64_t>(rank);
  RankVariation own;
  own.kernel = Draws(settings_.seed, Purpose::kernel, owner);
  own.host = Draws(settings_.seed, Purpose::host, owner);
  own.compute_factor = rank_speed_(Draws(settings_.seed, Purpose::rank_speed, owner)(0));
  for (const SlowRank& slow : settings_.slow_ranks) {
    if (slow.rank != rank) continue;
    own.compute_factor = factor_of(static_cast<double>(own.compute_factor) / static_cast<double>(kOne) * slow.compute);
    own.host_factor = factor_of(slow.host);
    own.network_factor = factor_of(slow.network);
  }
  for (std::size_t i = 0; i < settings_.pauses.size(); ++i) {
    const Pauses& pauses = settings_.pauses[i];
    const bool together = pauses.kind == Pauses::Kind::together;
    own.pause[i] = Draws(settings_.seed, Purpose::pause, 2 * (together ? 0 : owner) + i);
    own.next_pause[i] = own.pause[i].uniform(own.pauses_drawn[i]++, pauses.period) / 2;  // the phase: uniform in one period
  }
  return own;
}

SimTime Variation::distance(RankVariation& rank, std::size_t i) const {
  const Pauses& pauses = settings_.pauses[i];
  return pauses.kind == Pauses::Kind::random ? rank.pause[i].uniform(rank.pauses_drawn[i]++, pauses.period) : pauses.period;
}

SimTime Variation::pause(RankVariation& rank, SimTime now) const {
  SimTime total{};
  for (std::size_t i = 0; i < settings_.pauses.size(); ++i) {
    if (settings_.pauses[i].period == SimTime{} || rank.next_pause[i] > now) continue;
    total += settings_.pauses[i].length;
    while (rank.next_pause[i] <= now) rank.next_pause[i] += distance(rank, i);  // several that fell into a time in which the host waited are one
  }
  return total;
}

}  // namespace stepcast::sim
