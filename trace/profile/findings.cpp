// Runs the rules over each device of a rank, and over the ranks. Test: tests/unit/profile_findings_test.cpp.
#include "trace/profile/findings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "trace/profile/finding_rules.hpp"

namespace stepcast::trace::profile {

namespace {

// A rank that waits less than this part of what the median rank waits is one that the others wait for.
constexpr double kLateRank = 0.6;
constexpr double kWorthNaming = 0.2;  // of what the median rank waits: what a late rank does longer than others
constexpr double kStraggling = 0.03;  // of the window, what the median rank waits for it

void by_share(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) { return a.share > b.share; });
}

Time median_wait(const MatchedCollectives& c) {
  std::vector<Time> waits;
  for (const auto& [rank, r] : c.ranks) waits.push_back(r.wait);
  std::sort(waits.begin(), waits.end());
  return waits[waits.size() / 2];
}

}  // namespace

double Scene::share(Time time) const { return ratio(time, window()); }

CauseSum Scene::gaps(Cause cause) const { return device.gaps ? device.gaps->by_cause[static_cast<std::size_t>(cause)] : CauseSum{}; }

double Scene::gain_without(Spans cut, bool synchronisations_too) const {
  const Time span = replayed_span(rank.profile, device.device, {interval_sets::merge(std::move(cut)), synchronisations_too});
  return 1 - ratio(span, window());
}

std::string milliseconds_text(Time time) {
  return time < std::chrono::microseconds(100) ? fmt::format("{:.1f} us", microseconds(time)) : fmt::format("{:.1f} ms", microseconds(time) / 1000);
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::vector<Finding> findings_of(const RankDiagnosis& rank) {
  std::vector<Finding> all;
  for (const DeviceMetrics& device : rank.devices) {
    const Scene scene{rank, device};
    std::vector<Finding> found;
    find_host_causes(scene, found);
    find_lost_lead(scene, found);
    find_communication_causes(scene, found);
    find_kernel_causes(scene, found);
    for (Finding& f : found) {
      if (f.forecast && f.upper_bound > 0) f.forecast = std::min(*f.forecast, f.upper_bound);  // it may leave out more host time than lay in gaps
      f.where = rank.profile.label + ", device " + rank.profile.devices[device.device];
      all.push_back(std::move(f));
    }
  }
  by_share(all);
  return all;
}

std::vector<Finding> findings_across(const AcrossRanks& across, Time window) {
  std::vector<Finding> out;
  for (const auto& [type, c] : across.collectives) {
    const Time typical = median_wait(c);
    const double share = ratio(typical, window);
    if (share < kStraggling) continue;
    Finding f{
        "straggler",
        "",
        0.9,
        share,
        share,
        {},
        "look at what the late ranks' hosts and devices do before these collectives: their own gaps, data, other work on the node; slower clocks or links"};
    for (const auto& [rank, r] : c.ranks) {
      if (ratio(r.wait, typical) >= kLateRank) continue;
      f.where += fmt::format("{}rank {}", f.where.empty() ? "" : ", ", rank);
      f.evidence.push_back(fmt::format("{}: rank {} waits {}, the median rank {}; it was last to arrive {} times of {}", type, rank, milliseconds_text(r.wait),
                                       milliseconds_text(typical), r.last_to_arrive, c.matched));
      for (const auto& [what, more] : excess_of(across, rank)) {
        if (ratio(more, typical) >= kWorthNaming)
          f.evidence.push_back(fmt::format("rank {} spends {} more on {} than the median of the others", rank, milliseconds_text(more), what));
      }
    }
    f.evidence.push_back(fmt::format("the transfers themselves take {} (shortest duration over the ranks)", milliseconds_text(c.transfer)));
    if (!f.where.empty()) out.push_back(std::move(f));
  }
  by_share(out);
  return out;
}

std::vector<Finding> merged(std::vector<Finding> findings) {
  by_share(findings);
  std::vector<Finding> out;
  std::vector<int> others;
  for (Finding& f : findings) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const Finding& known) { return known.name == f.name; });
    if (same != out.end()) {
      ++others[static_cast<std::size_t>(same - out.begin())];
    } else {
      out.push_back(std::move(f));
      others.push_back(0);
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (others[i] > 0)
      out[i].evidence.push_back(fmt::format("found {} more time{} on other ranks or devices, with smaller shares", others[i], others[i] == 1 ? "" : "s"));
  }
  return out;
}

}  // namespace stepcast::trace::profile
