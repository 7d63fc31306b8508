// One rank in about forty lines: steps, device times, gaps by cause, collectives, kernels, oddities. docs/diagnose.md; test: tests/golden/diagnose_test.cpp.
#include "cli/report/diagnose/text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/diagnose/lines.hpp"
#include "cli/report/diagnose/memory.hpp"
#include "cli/report/diagnose/passes.hpp"
#include "cli/report/table.hpp"
#include "hw_models/text_file.hpp"
#include "trace/profile/oddities.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
using profile::Time;

constexpr std::size_t kOpsShown = 8, kGapsShown = 5;

std::string count_of(std::int64_t count) { return count_text(static_cast<double>(count)); }

std::string head(const profile::RankDiagnosis& rank) {
  const profile::Header& header = rank.profile.header;
  std::string text = rank.profile.label + ": " + count_of(rank.profile.events) + " events";
  if (header.rank) text += fmt::format(", rank {}", *header.rank) + (header.world_size ? fmt::format(" of {}", *header.world_size) : "");
  if (!header.gpus.empty()) text += ", " + printable(header.gpus.begin()->second);
  std::vector<Time> steps;
  for (const profile::Step& step : rank.steps) steps.push_back(step.time.end - step.time.begin);
  const profile::Distribution d = profile::distribution(std::move(steps));
  if (d.count > 0) text += fmt::format("\n{} step{}: median {}, {} to {}", d.count, d.count == 1 ? "" : "s", time_of(d.p50), time_of(d.min), time_of(d.max));
  return text + "\n";
}

std::string device_text(const profile::DeviceTimes& t) {
  Table table({"", "", "share"}, {0, 3});
  const auto row = [&](const char* name, Time time) {
    table.add({name, time_of(time), percent_text(profile::ratio(time, t.span)), bar(profile::ratio(time, t.span))});
  };
  row("compute", t.compute);
  row("exposed communication", t.exposed_comm);
  row("exposed copies", t.exposed_memory);
  row("idle", t.idle);
  std::string text = table.render();
  if (t.comm.count() > 0)
    text += fmt::format("  communication {} in all, {} of it beside compute\n", time_of(t.comm), percent_text(1 - profile::ratio(t.exposed_comm, t.comm)));
  return text;
}

std::string gaps_text(const profile::Gaps& gaps, const profile::Profile& p) {
  if (gaps.gaps.empty()) return "";
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < profile::kCauses; ++i) {
    if (gaps.by_cause[i].count > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return gaps.by_cause[a].total > gaps.by_cause[b].total; });
  Table table({"cause", "gaps", "time", "share"}, {0, 4});
  for (const std::size_t i : order) {
    const profile::CauseSum& sum = gaps.by_cause[i];
    table.add({name(static_cast<profile::Cause>(i)), count_of(sum.count), time_of(sum.total), percent_text(profile::ratio(sum.total, gaps.total)),
               bar(profile::ratio(sum.total, gaps.total), 30)});
  }
  std::string text = fmt::format("\nGaps between the kernels of stream {}: {} in {}\n", gaps.main_stream, time_of(gaps.total),
                                 count_of(static_cast<std::int64_t>(gaps.gaps.size()))) +
                     table.render();
  std::vector<const profile::IdleGap*> longest;
  for (const profile::IdleGap& gap : gaps.gaps) longest.push_back(&gap);
  std::stable_sort(longest.begin(), longest.end(), [](const auto* a, const auto* b) { return a->time.end - a->time.begin > b->time.end - b->time.begin; });
  if (longest.size() > kGapsShown) longest.resize(kGapsShown);
  Table most({"longest", "cause", "before"}, {1, 2});
  for (const profile::IdleGap* gap : longest)
    most.add({time_of(gap->time.end - gap->time.begin), name(gap->cause), printable(p.names[gap->next->name], kNameWidth)});
  return text + most.render();
}

std::string collectives_text(const profile::DeviceMetrics& m) {
  if (m.comm_by_type.empty()) return "";
  Table table({"collectives", "count", "time", "exposed", "longest"});
  for (const auto& [type, c] : m.comm_by_type) table.add({type, count_of(c.count), time_of(c.sum), time_of(c.not_under_compute), time_of(c.max)});
  return "\n" + table.render();
}

std::string achieved_text(const char* what, const std::vector<profile::Products>& products) {
  Time time{};
  double flop = 0;
  for (const profile::Products& p : products) {
    flop += p.flop;
    time += p.time;
  }
  if (time.count() == 0) return "";
  return fmt::format("{}: {} in {}, {:.1f} TFLOP/s\n", what, flops_text(flop), time_of(time), flop / static_cast<double>(time.count()) * 1e-3);
}

/// Time by class of kernel, products' FLOP/s, and the bandwidth of the collectives that took longest.
std::string rates_text(const profile::Rates& rates) {
  Time all{};
  for (const auto& [name, total] : rates.classes) all += total.total;
  if (all == Time{}) return "";
  std::vector<std::pair<Time, std::string>> classes;
  for (const auto& [name, total] : rates.classes) classes.emplace_back(total.total, name);
  std::sort(classes.rbegin(), classes.rend());
  std::string text;
  for (const auto& [time, name] : classes) text += (text.empty() ? "Kernels: " : ", ") + name + " " + percent_text(profile::ratio(time, all));
  text = "\n" + wrapped(text, 0);
  text += achieved_text("Matrix products with recorded shapes", rates.products);
  text += achieved_text("Attention with recorded shapes, all pairs counted", rates.attention);
  for (const profile::CollectiveRate& c : rates.collectives) {
    const auto bandwidth = c.bus_bandwidth();
    if (!bandwidth) continue;
    text += fmt::format("{} of {} over {} ranks: bus bandwidth {:.1f} GB/s (shortest of {})\n", c.type, size_text(c.bytes), c.ranks, *bandwidth * 1e-9,
                        count_of(c.count));
    break;
  }
  return text;
}

std::string ops_text(const profile::DeviceMetrics& m) {
  Table table({"time", "share", "count", "operations of the device"}, {3});
  Time all{};
  for (const profile::NamedTotal& op : m.ops) all += op.total;
  for (std::size_t i = 0; i < std::min(kOpsShown, m.ops.size()); ++i)
    table.add({time_of(m.ops[i].total), percent_text(profile::ratio(m.ops[i].total, all)), count_of(m.ops[i].count), printable(m.ops[i].name, kNameWidth)});
  return "\n" + table.render();
}

std::string oddities_text(const profile::Counts& oddities) {
  if (oddities.empty()) return "";
  std::string all = "\nOdd in this file:\n";
  for (const profile::Severity severity : {profile::Severity::error, profile::Severity::warning, profile::Severity::info}) {
    std::string text;
    for (const auto& [name, count] : oddities) {
      if (profile::severity_of(name) == severity) text += (text.empty() ? "" : ", ") + name + " " + count_of(count);
    }
    if (!text.empty()) all += wrapped(std::string(profile::name(severity)) + ": " + text, 2);
  }
  return all;
}

}  // namespace

std::string text_of(const profile::RankDiagnosis& rank) {
  std::string text = head(rank);
  if (rank.devices.empty()) text += "No device operation in this file: only the host was recorded.\n";
  for (const profile::DeviceMetrics& m : rank.devices) {
    text += fmt::format("\nDevice {}: {} from first to last operation\n", printable(rank.profile.devices[m.device]), time_of(m.whole_window.span));
    text += device_text(m.whole_window);
    if (m.gaps) text += gaps_text(*m.gaps, rank.profile);
    text += collectives_text(m) + rates_text(m.rates) + text_of(m.passes) + ops_text(m);
  }
  return text + memory_text(rank) + oddities_text(rank.profile.oddities);
}

std::string text_of(const profile::AcrossRanks& across) {
  if (across.collectives.empty()) return "";
  std::string text = fmt::format("\nAcross {} ranks\n", across.ranks.size());
  for (const auto& [type, c] : across.collectives) {
    Table table({type, "waits", "last to arrive"});
    for (const auto& [rank, r] : c.ranks) table.add({fmt::format("rank {}", rank), time_of(r.wait), count_of(r.last_to_arrive)});
    text += table.render() + fmt::format("  {} matched, transfer {}; rank {} waits least\n", count_of(c.matched), time_of(c.transfer), c.least_waiting_rank);
  }
  if (!across.clock_offsets.empty()) text += "  The clocks of the ranks differ; they were aligned by the ends of collectives.\n";
  return text;
}

}  // namespace stepcast::cli
