// See diagnose_page.hpp.
#include "cli/page/diagnose_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/diagnose/inferred.hpp"
#include "cli/report/diagnose/findings.hpp"
#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"
#include "trace/profile/memory_timeline.hpp"

namespace stepcast::cli {
namespace {

namespace profile = trace::profile;
double s(profile::Time time) { return static_cast<double>(time.count()) / 1e9; }

/// The file's name alone: where it lies is nobody else's business.
std::string file_of(const profile::Profile& profile) { return std::filesystem::path(profile.label).filename().string(); }

OrderedJson gaps_section(const profile::Gaps& gaps, const std::string& where) {
  OrderedJson json =
      section("bars", "Why the compute stream was idle, " + where, fmt::format("{} of idle time between its kernels, by cause.", time_text(s(gaps.total))));
  json["unit"] = "s";
  json["coloured"] = true;
  std::vector<std::pair<profile::Time, OrderedJson>> bars;
  for (std::size_t i = 0; i < gaps.by_cause.size(); ++i) {
    const profile::CauseSum& sum = gaps.by_cause[i];
    if (sum.count > 0)
      bars.emplace_back(
          sum.total,
          OrderedJson{{"name", profile::name(static_cast<profile::Cause>(i))}, {"value", s(sum.total)}, {"note", fmt::format("{} gaps", sum.count)}});
  }
  std::stable_sort(bars.begin(), bars.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  json["bars"] = OrderedJson::array();
  for (auto& bar : bars) json["bars"].push_back(std::move(bar.second));
  return json;
}

/// Of the device's memory, or null where the profile has none.
OrderedJson memory_of(const profile::RankDiagnosis& rank, const std::string& device, const std::string& where) {
  const auto timelines = profile::memory_timelines(rank.profile, rank.steps);
  const auto found = timelines.find("1:" + device);
  if (found == timelines.end() || found->second.curve.empty()) return nullptr;
  const profile::MemoryTimeline& m = found->second;
  OrderedJson json = section(
      "memory", "Device memory, " + where,
      fmt::format("At most {} allocated and {} reserved{}{}.", size_text(static_cast<double>(m.peak.allocated)),
                  size_text(static_cast<double>(m.peak_reserved)), m.step.empty() ? "" : ", the peak in " + m.step, m.op.empty() ? "" : " during " + m.op));
  const profile::Time begin = m.curve.front().time;
  OrderedJson times = OrderedJson::array(), reserved = OrderedJson::array(), allocated = OrderedJson::array(), steps = OrderedJson::array();
  for (const profile::MemoryPoint& point : m.curve) {
    times.push_back((point.time - begin).count());
    reserved.push_back(point.reserved);
    allocated.push_back(point.allocated);
  }
  for (std::size_t i = 0; i < rank.steps.size(); ++i)
    if (rank.steps[i].time.begin >= begin) steps.push_back({{"step", i}, {"begin_ns", (rank.steps[i].time.begin - begin).count()}});
  json["time_ns"] = times;
  json["reserved"] = reserved;
  json["owners"] = OrderedJson::array({{{"name", "allocated"}, {"bytes", allocated}}});
  const auto& limits = rank.profile.header.gpu_memory_bytes;
  const auto limit = std::find_if(limits.begin(), limits.end(), [&](const auto& entry) { return std::to_string(entry.first) == device; });
  json["limit_bytes"] = limit == limits.end() ? 0.0 : limit->second;
  json["steps"] = steps;
  return json;
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) text.replace(at, what.size(), by);
}

}  // namespace

void DiagnosePage::add(const Inferred& inferred) {
  inferred_ = sections_of(inferred);
  inferred_tiles_ = tiles_of(inferred);
  if (inferred.utilisation) peak_flops_ = inferred.utilisation->peak_flops;
}

void DiagnosePage::add(const profile::RankDiagnosis& rank) {
  const std::string file = file_of(rank.profile);
  if (ranks_++ == 0) title_ = file;
  labels_.emplace_back(rank.profile.label, file);
  for (const profile::DeviceMetrics& device : rank.devices) {
    const std::string name = rank.profile.devices[device.device], where = fmt::format("{}, device {}", file, name);
    const profile::DeviceTimes& t = device.whole_window;
    breakdown_.push_back(
        {{"name", where},
         {"parts", {{"compute", s(t.compute)}, {"exposed communication", s(t.exposed_comm)}, {"exposed copies", s(t.exposed_memory)}, {"idle", s(t.idle)}}}});
    if (devices_++ == 0) {
      const double span = s(t.span);
      const auto share = [span](profile::Time part) { return percent_text(span > 0 ? s(part) / span : 0); };
      tiles_ = {{"recorded", time_text(span), fmt::format("{} step{}", rank.steps.size(), rank.steps.size() == 1 ? "" : "s")},
                {"compute", share(t.compute), time_text(s(t.compute))},
                {"exposed communication", share(t.exposed_comm), time_text(s(t.exposed_comm))},
                {"idle", share(t.idle), time_text(s(t.idle))}};
    }
    if (devices_ > kDetailed) continue;
    details_.push_back(step_section(rank, device, where));
    if (device.gaps && device.gaps->total.count() > 0) details_.push_back(gaps_section(*device.gaps, where));
    for (OrderedJson one : {products_section(device.rates, peak_flops_, where), bandwidth_section(device.rates, where), memory_of(rank, name, where)})
      if (!one.is_null()) details_.push_back(std::move(one));
  }
}

Page DiagnosePage::page(const std::vector<profile::Finding>& findings) const {
  Page page{"diagnose", title_, ranks_ > 1 ? fmt::format("and {} more files", ranks_ - 1) : "", tiles_, {}, {}};
  page.tiles.insert(page.tiles.end(), inferred_tiles_.begin(), inferred_tiles_.end());
  page.tiles.push_back({"findings", std::to_string(findings.size()), ""});
  OrderedJson list = section("findings", "Findings", findings.empty() ? "Nothing takes a noteworthy share of the time." : "Largest share of the time first.");
  std::vector<profile::Finding> shown = findings;
  for (profile::Finding& finding : shown) {
    for (const auto& [label, file] : labels_) {
      replace_all(finding.where, label, file);
      for (std::string& evidence : finding.evidence) replace_all(evidence, label, file);
    }
  }
  list["findings"] = json_of(shown);
  page.sections.push_back(std::move(list));
  OrderedJson parts =
      section("parts", "Where the time went", "Each device from its first operation to its last: kernels, what ran with no kernel beside it, and nothing.");
  parts["unit"] = "s";
  parts["rows"] = breakdown_;
  if (devices_ > 0) page.sections.push_back(std::move(parts));
  page.sections.insert(page.sections.end(), inferred_.begin(), inferred_.end());
  page.sections.insert(page.sections.end(), details_.begin(), details_.end());
  if (devices_ > kDetailed) page.notices.push_back(fmt::format("Timelines are shown of the first {} of {} devices.", kDetailed, devices_));
  return page;
}

}  // namespace stepcast::cli
