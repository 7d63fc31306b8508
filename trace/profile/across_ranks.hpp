// Ranks of one run side by side: who waits for whom in each collective, and who is the straggler. Collectives are matched by position.
// Definitions: docs/diagnose.md, "Across ranks". Tests: tests/unit/profile_ranks_test.cpp, tests/model/profile_figures_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/profile/metrics.hpp"
#include "trace/profile/profile.hpp"

namespace stepcast::trace::profile {

/// What is kept of a rank for the comparison.
struct RankSummary {
  std::int64_t rank = 0;
  std::vector<Step> steps;                   // in the clock of all: baseTimeNanoseconds is added
  std::map<std::string, Spans> collectives;  // by type, ordered by begin
};
/// One rank, or one for each device where several communicate (ranks of one machine recorded in one file; steps are not told apart then and left out).
/// `position`: the first rank's number where the file does not say it.
std::vector<RankSummary> summaries_of(const Profile& profile, std::int64_t position);

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
  std::vector<StepAcrossRanks> steps;          // those that every rank has
  std::map<std::int64_t, Time> clock_offsets;  // subtracted from a rank's times; empty where the clocks agree
};
AcrossRanks compare_ranks(std::vector<RankSummary> ranks);

}  // namespace stepcast::trace::profile
