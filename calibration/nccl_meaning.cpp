// From the table of an nccl-tests log to measurements: old releases print neither the collective's name nor, in excerpts, the ranks. busbw / algbw is exact:
// 2(n-1)/n for an all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all, 1 for the rest. Test: tests/unit/nccl_log_test.cpp.
#include <algorithm>
#include <array>
#include <cmath>

#include "calibration/nccl_log.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::calibration {
namespace {

struct Known {
  std::string_view name, file_name;  // second spelling in names of files
  double passes;                     // busbw / algbw is passes (n-1)/n, or 1 if passes is 0
  bool reduces, rooted;
};
constexpr std::array kKnown{Known{"all_gather", "allgather", 1, false, false}, Known{"reduce_scatter", "reducescatter", 1, true, false},
                            Known{"all_reduce", "allreduce", 2, true, false},  Known{"alltoall", "all_to_all", 1, false, false},
                            Known{"broadcast", "bcast", 0, false, true},       Known{"reduce", "reduce_", 0, true, true},
                            Known{"sendrecv", "send_recv", 0, false, false}};

constexpr std::int64_t kMaxRanks = 1 << 20;

struct Ratio {
  double value = 1, error = 1;  // of busbw / algbw: the most precise row, and how far its printed digits leave it open
};

Ratio ratio_of(const NcclRun& run) {
  Ratio best;
  for (const NcclRow& row : run.rows) {
    for (const auto& timing : {row.out_of_place, row.in_place}) {
      if (!timing || timing->algbw <= 0 || timing->busbw <= 0) continue;
      const double value = timing->busbw / timing->algbw;
      const double error = value * (0.005 / timing->busbw + 0.005 / timing->algbw);
      if (error < best.error) best = {value, error};
    }
  }
  return best;
}

/// Smallest and largest number of ranks with this ratio; empty if there is none.
std::optional<std::pair<std::int64_t, std::int64_t>> ranks_with(const Known& known, const Ratio& ratio) {
  if (known.passes == 0) return std::nullopt;
  const double low = (ratio.value - ratio.error) / known.passes, high = (ratio.value + ratio.error) / known.passes;
  if (low >= 1 || high <= 0) return std::nullopt;
  const auto first = static_cast<std::int64_t>(std::max(2.0, std::ceil(1 / (1 - std::max(low, 0.0)))));
  const auto last = high >= 1 ? kMaxRanks : static_cast<std::int64_t>(std::min<double>(kMaxRanks, std::floor(1 / (1 - high))));
  return first <= last ? std::optional(std::pair(first, last)) : std::nullopt;
}

bool fits(const Known& known, const NcclRun& run, const Ratio& ratio) {
  const NcclRow& row = run.rows.front();
  if (row.root && *row.root >= 0 && !known.rooted) return false;
  if (known.rooted && (!row.root || *row.root < 0)) return false;
  if (!row.redop.empty() && !known.reduces && known.name != "sendrecv") return false;  // sendrecv prints the option's default
  if (row.redop.empty() && known.reduces) return false;
  if (known.passes == 0) return std::abs(ratio.value - 1) <= ratio.error;
  const auto ranks = ranks_with(known, ratio);
  return ranks && (!run.nranks || (ranks->first <= *run.nranks && *run.nranks <= ranks->second));
}

const Known* named(std::string_view name) {
  const auto found = std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& known) { return known.name == name || known.file_name == name; });
  return found == kKnown.end() ? nullptr : &*found;
}

/// Which collective; nothing if that can't be told. `note`: from what it was told.
const Known* collective_of(const NcclRun& run, const Ratio& ratio, const std::string& file, std::string& note) {
  if (!run.collective.empty()) return named(run.collective);
  std::vector<const Known*> possible;
  for (const Known& known : kKnown) {
    if (fits(known, run, ratio)) possible.push_back(&known);
  }
  if (possible.size() == 1) {
    note = "columns and bandwidths are those of " + std::string(possible[0]->name);
    return possible[0];
  }
  const std::string name = file.substr(file.find_last_of('/') + 1);
  for (const Known* known : possible) {
    if (name.find(known->name) == std::string::npos && name.find(known->file_name) == std::string::npos) continue;
    note = "the file's name says " + std::string(known->name);
    return known;
  }
  return nullptr;
}

/// Ranks and, where hosts are named, how they are spread; 0 if unknown.
struct Group {
  std::int64_t ranks = 0, nodes = 0;
};

Group group_of(const NcclRun& run, const Known& known, const Ratio& ratio, std::vector<std::string>& notes) {
  const auto range = ranks_with(known, ratio);
  const auto possible = [&](std::int64_t n) { return !range || (range->first <= n && n <= range->second); };
  const std::int64_t named_ranks = run.ranks.empty() ? 0 : *run.ranks.rbegin() + 1;
  Group group;
  if (run.nranks && possible(*run.nranks)) group.ranks = *run.nranks;
  else if (named_ranks > 0 && possible(named_ranks)) group.ranks = named_ranks;
  else if (range && range->first == range->second) {
    group.ranks = range->first;
    notes.push_back(std::to_string(group.ranks) + " ranks, by the ratio of the bandwidths");
    return group;
  }
  const auto hosts = static_cast<std::int64_t>(run.hosts.size());
  if (hosts > 0 && group.ranks % hosts == 0) group.nodes = hosts;
  return group;
}

hw::Dtype dtype_of(const std::string& type) {
  if (type == "double" || type == "int64" || type == "uint64") return hw::Dtype::fp64;
  if (type == "half" || type == "float16") return hw::Dtype::fp16;
  if (type == "bfloat16" || type == "bf16") return hw::Dtype::bf16;
  return type.find('8') != std::string::npos ? hw::Dtype::fp8 : hw::Dtype::fp32;
}

std::optional<hw::CollectiveKind> kind_of(std::string_view name) {
  if (name == "all_gather") return hw::CollectiveKind::all_gather;
  if (name == "reduce_scatter") return hw::CollectiveKind::reduce_scatter;
  if (name == "all_reduce") return hw::CollectiveKind::all_reduce;
  return std::nullopt;
}

/// Why the rows of the file can't be used; empty if they can.
std::string obstacle(const NcclRun& run, const Known* known, const Group& group) {
  if (!known) return run.collective.empty() ? "which collective this is can't be told" : "no formula for " + run.collective;
  if (!kind_of(known->name)) return "no formula for " + std::string(known->name);
  return group.ranks < 2 ? "the number of ranks can't be told" : "";
}

void add_row(const NcclRow& row, const Measurement& shape, const std::string& why_not, MeasurementFile& result) {
  for (const auto& timing : {row.out_of_place, row.in_place}) {
    if (!timing) continue;
    const std::string reason = row.bytes == 0 ? "no bytes" : row.wrong ? "wrong results" : timing->time_us <= 0 ? "no time" : why_not;
    if (!reason.empty()) {
      ++result.left_out[reason];
      continue;
    }
    Measurement measurement = shape;
    measurement.collective.bytes = row.bytes;
    measurement.collective.dtype = dtype_of(row.type);
    measurement.time = timing->time_us * microsecond;
    measurement.line = row.line;
    result.rows.push_back(std::move(measurement));
  }
}

}  // namespace

MeasurementFile nccl_measurements(const NcclRun& run, const std::string& file) {
  MeasurementFile result{file, "nccl-tests log", {}, {}, run.lines_without_data, {}};
  for (const std::string& failure : run.failures) result.notes.push_back("the run failed: " + failure);
  if (run.damaged > 0) {
    result.left_out["damaged line of the table"] = run.damaged;
    result.notes.push_back("first damaged line: " + std::to_string(run.first_damaged));
  }
  if (run.rows.empty()) return result;
  const Ratio ratio = ratio_of(run);
  std::string told;
  const Known* known = collective_of(run, ratio, file, told);
  if (!told.empty()) result.notes.push_back(told);
  const Group group = known ? group_of(run, *known, ratio, result.notes) : Group{};
  const std::string why_not = obstacle(run, known, group);
  Measurement shape;
  shape.timed = Timed::collective;
  shape.gpu = run.gpu;
  if (why_not.empty()) {
    shape.collective.kind = *kind_of(known->name);
    const std::int64_t per_node = group.nodes > 0 ? group.ranks / group.nodes : 0;
    shape.collective.group = {static_cast<std::int32_t>(per_node), static_cast<std::int32_t>(group.nodes > 0 ? group.nodes : group.ranks)};
  }
  for (const NcclRow& row : run.rows) add_row(row, shape, why_not, result);
  return result;
}

}  // namespace stepcast::calibration
