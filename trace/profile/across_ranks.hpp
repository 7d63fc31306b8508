// Ranks of one run side by side: who waits for whom in each collective, and who is the straggler. Collectives are matched by position.
// Definitions: docs/diagnose.md, "Across ranks". Tests: tests/unit/profile_ranks_test.cpp, tests/model/profile_figures_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trace/profile/metrics.hpp"
#include "trace/profile/profile.hpp"

namespace stepcast::trace::profile {

/// What is kept of a rank for the comparison.
struct RankSummary {
  std::int64_t rank = 0;
  std::vector<Step> steps;                   // in the clock of all: baseTimeNanoseconds is added
  std::map<std::string, Spans> collectives;  // by type, ordered by begin
  std::uint32_t device = 0;                  // index into Profile::devices
  std::map<std::string, Time> spent = {};    // "compute", and what of the gaps is the rank's own doing, by finer cause
};
/// One rank, or one for each device where several communicate (ranks of one machine recorded in one file; steps are not told apart then and left out).
/// `position`: the first rank's number where the file does not say it.
std::vector<RankSummary> summaries_of(const Profile& profile, std::int64_t position);
/// RankSummary::spent of a device.
std::map<std::string, Time> own_time_of(const DeviceMetrics& device);

struct RankInCollective {
  std::int64_t count = 0, last_to_arrive = 0;
  Time wait{}, duration{};
};

struct MatchedCollectives {
  std::int64_t matched = 0;
  bool from_end = false;  // the counts differ: matched backwards from the last
  Time start_skew_p50{}, start_skew_max{}, end_skew_p50{}, end_skew_max{}, transfer{};
  std::map<std::int64_t, RankInCollective> ranks;
  std::int64_t least_waiting_rank = 0;
};

struct StepAcrossRanks {
  std::string step;
  Time start_skew{};
  std::map<std::int64_t, Time> durations;
  std::int64_t slowest = 0;
  double max_over_median = 1;
};

struct AcrossRanks {
  std::vector<std::int64_t> ranks;
  std::map<std::string, MatchedCollectives> collectives;
  std::vector<StepAcrossRanks> steps;                         // those that every rank has
  std::map<std::int64_t, Time> clock_offsets;                 // subtracted from a rank's times; empty where the clocks agree
  std::map<std::int64_t, std::map<std::string, Time>> spent;  // RankSummary::spent, by rank
  std::vector<Lateness> lateness;                             // of the others, for each rank in the order in which they were given; empty for one rank
};
AcrossRanks compare_ranks(std::vector<RankSummary> ranks);

/// What a rank spends more on than the median of the others: the largest difference first.
std::vector<std::pair<std::string, Time>> excess_of(const AcrossRanks& across, std::int64_t rank);

}  // namespace stepcast::trace::profile
