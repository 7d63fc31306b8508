// The sections of a run's page that are made of its trace. See run_page.hpp.
#include <fmt/format.h>

#include <algorithm>

#include "cli/page/run_page.hpp"
#include "cli/page/timeline.hpp"
#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"
#include "trace/breakdown.hpp"

namespace stepcast::cli {
namespace {

using trace::Category, trace::Slice, trace::Trace;

constexpr std::int64_t kPicoseconds = 1000;  // of a nanosecond

std::int64_t ns(SimTime time) { return time.count() / kPicoseconds; }

std::string kernel_kind(const Slice& slice) {
  if (slice.lane != 0) return "side_kernel";
  if (slice.recompute) return "recompute";
  switch (slice.phase) {
    case trace::Phase::forward: return "forward";
    case trace::Phase::backward: return "backward";
    case trace::Phase::optimizer: return "optimizer";
    case trace::Phase::none: break;
  }
  return "other_kernel";
}

const char* wait_kind(trace::HostState state) {
  using trace::HostState;
  switch (state) {
    case HostState::rate_limiter: return "rate_limiter";
    case HostState::synchronize: return "synchronize";
    case HostState::device_malloc: return "device_malloc";
    case HostState::allocator_flush: return "allocator_flush";
    case HostState::data_loader: return "data_loader";
    case HostState::launch_queue_full: return "launch_queue";
    case HostState::paused: return "host_pause";
    case HostState::working: break;
  }
  return "host_work";
}

void add_host(const Trace& trace, Timeline& timeline) {
  timeline.open_lane("host");
  for (const Slice& slice : trace.ranks.front().slices) {
    if (slice.lane != trace::kHostLane || slice.category == Category::annotation) continue;
    const bool waits = slice.host_state != trace::HostState::working;
    if (slice.category == Category::host_runtime && !waits) continue;  // within the op that made it
    timeline.add(ns(slice.begin), ns(slice.end), wait_kind(slice.host_state), trace.names[slice.name], waits ? 1 : 0);
  }
}

void add_stream(const Trace& trace, std::int16_t lane, Timeline& timeline) {
  timeline.open_lane(trace.streams[static_cast<std::size_t>(lane)]);
  for (const Slice& slice : trace.ranks.front().slices) {
    if (slice.lane != lane) continue;
    const bool collective = slice.category == Category::collective;
    if (!collective && slice.category != Category::kernel) continue;
    const std::string kind = collective ? hw::name(trace.collectives[slice.detail].shape.kind) : kernel_kind(slice);
    timeline.add(ns(slice.begin), ns(slice.end), kind, collective ? trace.collectives[slice.detail].label : trace.kernels[slice.detail].name);
  }
}

void add_gaps(const trace::Breakdown& breakdown, Timeline& timeline) {
  timeline.open_lane("why idle");
  for (const trace::Gap& gap : breakdown.gaps)
    timeline.add(ns(gap.begin), ns(gap.end), std::string("gap_") + trace::name(gap.cause), gap.before.empty() ? "" : "before " + gap.before);
}

std::string gaps_text(const trace::Breakdown& breakdown) {
  std::vector<std::pair<SimTime, const char*>> causes;
  for (std::size_t i = 0; i < breakdown.causes.size(); ++i)
    if (breakdown.causes[i].count > 0) causes.emplace_back(breakdown.causes[i].total, trace::name(static_cast<trace::GapCause>(i)));
  std::stable_sort(causes.begin(), causes.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (causes.empty()) return "The compute stream is never idle.";
  std::string text = "The compute stream is idle";
  SimTime total{};
  for (const auto& [time, name] : causes) total += time;
  text += fmt::format(" for {}, most of it because of ", time_text(to_seconds(total).in(second)));
  for (std::size_t i = 0; i < std::min<std::size_t>(3, causes.size()); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", causes[i].second, time_text(to_seconds(causes[i].first).in(second)));
  return text + ".";
}

std::string memory_text(const Report& r) {
  std::vector<OwnerRow> rows = r.memory;
  std::stable_sort(rows.begin(), rows.end(), [](const OwnerRow& a, const OwnerRow& b) { return a.bytes > b.bytes; });
  std::string text = fmt::format("At most {} are allocated and {} reserved, of {}", size_text(static_cast<double>(r.peak_allocated_bytes)),
                                 size_text(static_cast<double>(r.peak_reserved_bytes)), size_text(static_cast<double>(r.memory_limit_bytes)));
  for (std::size_t i = 0; i < std::min<std::size_t>(3, rows.size()); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "; at that moment " : ", ", rows[i].owner, size_text(static_cast<double>(rows[i].bytes)));
  return text + ".";
}

}  // namespace

OrderedJson timeline_section(const Prediction& prediction, std::int64_t parts) {
  const Trace& trace = prediction.result.trace;
  const int step = static_cast<int>(trace.steps.size()) - 1;
  const trace::Breakdown breakdown = trace::break_down(trace, trace.ranks.front(), step);
  OrderedJson json = section("timeline", "Timeline of the last step", gaps_text(breakdown));
  Timeline timeline(ns(breakdown.begin), ns(breakdown.end) - ns(breakdown.begin), parts);
  add_host(trace, timeline);
  if (timeline.lane_is_empty()) timeline.drop_lane();
  add_stream(trace, 0, timeline);
  add_gaps(breakdown, timeline);
  for (std::size_t lane = 1; lane < trace.streams.size(); ++lane) {
    add_stream(trace, static_cast<std::int16_t>(lane), timeline);
    if (timeline.lane_is_empty()) timeline.drop_lane();
  }
  timeline.write(json);
  return json;
}

MemoryCurve memory_curve(const Trace& trace) {
  const trace::RankTrace& rank = trace.ranks.front();
  MemoryCurve curve;
  curve.owners = trace.owners.empty() ? std::vector<std::string>{"allocated"} : trace.owners;
  curve.by_owner.resize(curve.owners.size());
  std::vector<std::int64_t> held = rank.held_before;
  held.resize(curve.owners.size());
  const std::int64_t begin = rank.memory.front().time.count();
  const std::int64_t stretch = std::max<std::int64_t>(1, (rank.memory.back().time.count() - begin) / static_cast<std::int64_t>(MemoryCurve::kCurvePoints - 1));
  std::int64_t last = -1;
  for (const trace::MemorySample& sample : rank.memory) {
    if (trace.owners.empty()) held[0] = sample.allocated;
    else held[sample.owner] += sample.delta;
    const std::int64_t place = (sample.time.count() - begin) / stretch;
    const bool opens = place != last;
    if (!opens && sample.allocated <= curve.allocated.back()) {
      curve.reserved.back() = std::max(curve.reserved.back(), sample.reserved);
      continue;
    }
    last = place;
    const auto put = [opens](std::vector<std::int64_t>& values, std::int64_t value) {
      if (opens) values.push_back(value);
      else values.back() = value;
    };
    put(curve.time_ns, ns(sample.time));
    put(curve.allocated, sample.allocated);
    put(curve.reserved, sample.reserved);
    for (std::size_t owner = 0; owner < held.size(); ++owner) put(curve.by_owner[owner], held[owner]);
  }
  return curve;
}

OrderedJson memory_section(const Prediction& prediction) {
  const Trace& trace = prediction.result.trace;
  const MemoryCurve curve = memory_curve(trace);
  OrderedJson json = section("memory", "Device memory through the run", memory_text(prediction.report));
  json["time_ns"] = curve.time_ns;
  json["reserved"] = curve.reserved;
  json["owners"] = OrderedJson::array();
  for (std::size_t owner = 0; owner < curve.owners.size(); ++owner) {
    const auto& bytes = curve.by_owner[owner];
    if (std::any_of(bytes.begin(), bytes.end(), [](std::int64_t b) { return b != 0; }))
      json["owners"].push_back({{"name", curve.owners[owner]}, {"bytes", bytes}});
  }
  json["limit_bytes"] = prediction.report.memory_limit_bytes;
  json["device_bytes"] = trace.device_memory_bytes;
  json["steps"] = OrderedJson::array();
  for (std::size_t step = trace.first_recorded_step; step < trace.steps.size(); ++step)
    json["steps"].push_back({{"step", step}, {"begin_ns", ns(trace.steps[step].host_begin)}});
  return json;
}

}  // namespace stepcast::cli
