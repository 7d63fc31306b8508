// The text of a report, section by section. docs/report.md; test: tests/unit/report_test.cpp.
#include "cli/report/text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/out_of_memory.hpp"
#include "cli/report/table.hpp"

namespace stepcast::cli {
namespace {

constexpr std::size_t kKernelsInText = 12, kCausesInText = 5;

double gap_total(const Report& r) {
  double total = 0;
  for (const GapRow& gap : r.gaps) total += gap.total_s;
  return total;
}

std::string summary(const Report& r) {
  Table table({"", "", "", ""}, {0, 1, 2, 3});
  table.add({"step time", time_text(r.step_time_s), "tokens/s/GPU", count_text(r.tokens_per_s_per_gpu)});
  if (r.has_peak) {
    table.add({"MFU", percent_text(r.mfu), "HFU", percent_text(r.hfu)});
    table.add({"MFU, 6P only", percent_text(r.mfu_6p), "model FLOPs per GPU and step", flops_text(r.model_flops_per_step)});
  }
  if (r.memory_limit_bytes > 0) {
    table.add({"peak allocated", size_text(static_cast<double>(r.peak_allocated_bytes)), "peak reserved",
               fmt::format("{} of {}", size_text(static_cast<double>(r.peak_reserved_bytes)), size_text(static_cast<double>(r.memory_limit_bytes)))});
    const std::int64_t headroom = r.memory_limit_bytes - r.peak_reserved_bytes;
    table.add({"headroom", size_text(static_cast<double>(headroom)), "of the limit",
               percent_text(static_cast<double>(headroom) / static_cast<double>(r.memory_limit_bytes))});
    table.add(
        {"allocation retries", count_text(static_cast<double>(r.num_alloc_retries)), "device mallocs", count_text(static_cast<double>(r.num_device_mallocs))});
  }
  table.add({"communication", time_text(r.comm_s), "exposed", fmt::format("{} ({} hidden)", time_text(r.exposed_comm_s), percent_text(r.overlap_fraction))});
  return table.render() + fmt::format("  bound by {}: {}\n", r.bound, r.bound_reason);
}

std::string spread_text(const Percentiles& p) { return fmt::format("10 %: {}, median {}, 90 %: {}", time_text(p.p10), time_text(p.p50), time_text(p.p90)); }

std::string interval(const Report& r) {
  const IntervalRow& i = r.interval;
  if (i.members == 0) return "";
  std::string text = fmt::format("What is uncertain\n  80 % of {} forecasts with constants drawn from their spreads: step time {} to {}", i.members,
                                 time_text(i.step_time_s.p10), time_text(i.step_time_s.p90));
  if (r.has_peak) text += fmt::format(", MFU {} to {}", percent_text(i.mfu.p10), percent_text(i.mfu.p90));
  text += i.left_out > 0 ? fmt::format("; {} do not fit into memory\n", i.left_out) : "\n";
  Table table({"", ""});
  for (std::size_t c = 0; c < std::min(kCausesInText, i.causes.size()); ++c) {
    const double change = i.causes[c].step_time_s / r.step_time_s - 1;
    table.add({i.causes[c].name, fmt::format("{:+.2f} %", 100 * change)});
  }
  return i.causes.empty() ? text : text + "  What moves the step time most, one standard deviation up\n" + table.render();
}

std::string differences(const Report& r) {
  std::string text;
  if (r.mean_of_steps) text += fmt::format("  {} steps: {}\n", r.measured_steps, spread_text(r.step_time_percentiles_s));
  if (!r.seeds.step_times_s.empty())
    text += fmt::format("  {} seeds: mean {}, {}\n", r.seeds.step_times_s.size(), time_text(r.seeds.mean_s), spread_text(r.seeds.percentiles_s));
  if (const std::int64_t rank = straggler(r); rank >= 0) {
    const auto most = std::max_element(r.rank_waits.begin(), r.rank_waits.end(),
                                       [](const RankRow& a, const RankRow& b) { return a.collective_wait_s < b.collective_wait_s; });
    const RankRow& late = r.rank_waits[static_cast<std::size_t>(rank)];
    text += fmt::format("  {:.0f} % of the collectives that wait for somebody wait for rank {}; it waits {} a step, rank {} waits {}\n", 100 * late.last_share,
                        rank, time_text(late.collective_wait_s), most - r.rank_waits.begin(), time_text(most->collective_wait_s));
  }
  return text.empty() ? "" : "How steps and ranks differ\n" + text;
}

std::string where_time_goes(const Report& r) {
  const double step = r.step_time_s;
  const auto share = [&](double part) { return step > 0 ? part / step : 0; };
  Table table({"", "time", "share", "gaps", ""}, {0, 4});
  const double busy = step - gap_total(r);
  table.add({"kernels", time_text(busy), percent_text(share(busy)), "", bar(share(busy))});
  std::vector<GapRow> gaps = r.gaps;
  std::stable_sort(gaps.begin(), gaps.end(), [](const GapRow& a, const GapRow& b) { return a.total_s > b.total_s; });
  for (const GapRow& gap : gaps) {
    table.add(
        {"idle: " + gap.cause, time_text(gap.total_s), percent_text(share(gap.total_s)), count_text(static_cast<double>(gap.count)), bar(share(gap.total_s))});
  }
  return "Where the step goes (compute stream)\n" + table.render();
}

std::string phases(const Report& r) {
  Table table({"", "span", "compute", "communication", "exposed", "device idle", "host blocked", "data wait"});
  const auto row = [&](const std::string& name, double span, double compute, double comm, double exposed, double idle, double blocked, double data) {
    table.add({name, time_text(span), time_text(compute), time_text(comm), time_text(exposed), time_text(idle), time_text(blocked), time_text(data)});
  };
  for (const PhaseRow& p : r.phases) row(p.name, p.span_s, p.compute_s, p.comm_s, p.exposed_comm_s, p.idle_s, p.host_blocked_s, p.data_wait_s);
  row("step", r.step_time_s, r.compute_s, r.comm_s, r.exposed_comm_s, r.idle_s, r.host_blocked_s, r.data_wait_s);
  return "Phases\n" + table.render();
}

std::string collectives(const Report& r) {
  if (r.collectives.empty()) return "";
  Table table({"", "calls", "size", "on the wire", "exposed"});
  for (const CollectiveRow& c : r.collectives) {
    table.add({c.kind, count_text(static_cast<double>(c.calls)), size_text(static_cast<double>(c.bytes)), size_text(c.wire_bytes), time_text(c.exposed_s)});
  }
  return "Collectives per step and rank\n" + table.render();
}

std::string memory_owners(const Report& r) {
  if (r.memory.empty()) return "";
  double total = 0;
  for (const OwnerRow& owner : r.memory) total += static_cast<double>(owner.bytes);
  Table table({"", "size", "share", ""}, {0, 3});
  std::vector<OwnerRow> rows = r.memory;
  std::stable_sort(rows.begin(), rows.end(), [](const OwnerRow& a, const OwnerRow& b) { return a.bytes > b.bytes; });
  for (const OwnerRow& owner : rows) {
    const double share = total > 0 ? static_cast<double>(owner.bytes) / total : 0;
    table.add({owner.owner, size_text(static_cast<double>(owner.bytes)), percent_text(share), bar(share)});
  }
  return "Memory at the peak, by what it is for\n" + table.render();
}

std::string kernels(const Report& r) {
  if (r.kernels.empty()) return "";
  Table table({"", "time", "share", "count"});
  for (std::size_t i = 0; i < std::min(kKernelsInText, r.kernels.size()); ++i) {
    const KernelRow& k = r.kernels[i];
    table.add({k.name, time_text(k.total_s), percent_text(r.step_time_s > 0 ? k.total_s / r.step_time_s : 0), count_text(static_cast<double>(k.count))});
  }
  const std::string more = r.kernels.size() > kKernelsInText ? fmt::format("  and {} more\n", r.kernels.size() - kKernelsInText) : "";
  return "Kernels that take most time\n" + table.render() + more;
}

std::string conventions(const Report& r) {
  std::string text = "How to read it\n";
  const std::string steps = r.mean_of_steps ? fmt::format("mean of the last {} of {} steps", r.measured_steps, r.steps)
                                            : fmt::format("between the ends of the optimizer of the last two of {} steps", r.steps);
  text += fmt::format("  step time: {}; {} rank{}, {}\n", steps, r.ranks, r.ranks == 1 ? "" : "s", r.rank_mode);
  if (r.has_peak) {
    const std::string rule = r.flops_convention == "6p"                 ? "6 P, no attention"
                             : r.flops_convention == "causal_attention" ? "6 P + 6 L h s"
                                                                        : "6 P + 12 L h s, attention over all pairs";
    text += fmt::format("  MFU: model FLOPs per token = {} (flops_convention {}), no recomputation, over {}/s; HFU adds recomputation\n", rule,
                        r.flops_convention, flops_text(r.peak_flops));
  }
  return text;
}

std::string assumptions(const Report& r) {
  if (r.assumptions.empty()) return "";
  Table table({"", "", "", ""}, {0, 1, 3});
  for (const AssumedConstant& a : r.assumptions) table.add({a.profile, a.constant, fmt::format("{:g}", a.value), a.source});
  return "Assumed constants (no measurement or data sheet behind them; SI units)\n" + table.render();
}

std::string list(const char* title, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "  " + line + "\n";
  return lines.empty() ? "" : title + text;
}

}  // namespace

std::string headline(const ScenarioFacts& s) {
  return fmt::format("{} on {} x {} ({} x {}), {}, sequences of {}, micro-batch {} x {}, {}, recomputation {}, {}", s.model, s.nodes * s.gpus_per_node,
                     s.device, s.nodes, s.gpus_per_node, s.policy, s.seq_len, s.micro_batch, s.grad_accum, s.precision, s.recompute, s.kernels);
}

std::string to_text(const Report& r) {
  std::string text = r.scenario.name.empty() ? "" : r.scenario.name + "\n";
  text += wrapped(headline(r.scenario), 0);
  if (!r.scenario.why.empty()) text += wrapped(r.scenario.why, 2);
  std::vector<std::string> parts;
  if (r.outcome == "ok") parts = {summary(r), interval(r), differences(r), where_time_goes(r), phases(r), collectives(r), memory_owners(r), kernels(r)};
  else if (r.outcome == "out_of_memory") parts = {out_of_memory_text(r.out_of_memory)};
  else parts = {list("DEADLOCK: who waits for what\n", r.deadlock)};
  parts.insert(parts.end(), {list("Warnings\n", r.warnings), r.outcome == "ok" ? conventions(r) : "", assumptions(r)});
  for (const std::string& part : parts) {
    if (!part.empty()) text += "\n" + part;
  }
  return text;
}

}  // namespace stepcast::cli
