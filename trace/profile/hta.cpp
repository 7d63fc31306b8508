// Re-derived from HTA's source at f4d0062. Test: tests/model/profile_figures_test.cpp.
#include "trace/profile/hta.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

enum class HtaType : std::uint8_t { computation, communication, memory, other };

constexpr Time kConsecutiveKernelDelay = std::chrono::microseconds(30);

HtaType type_of(std::string_view name) {
  if (name.starts_with("nccl") || name.starts_with("hccl") || contains(name, "ncclKernel")) return HtaType::communication;
  const bool hip = name.starts_with("hip"), copy = name.starts_with("Memcpy") || name.starts_with("Memset") || name.starts_with("dma");
  if (copy || name.starts_with("hipMemcpy") || name.starts_with("hipMemset")) return HtaType::memory;
  if (hip) return HtaType::communication;
  for (const std::string_view part : {"Memcpy", "Memset", "dma", "Sync", "Wait Event"}) {
    if (contains(name, part)) return HtaType::other;
  }
  return HtaType::computation;
}

const char* name(HtaType type) {
  switch (type) {
    case HtaType::computation: return "COMPUTATION";
    case HtaType::communication: return "COMMUNICATION";
    case HtaType::memory: return "MEMORY";
    case HtaType::other: return "OTHER";
  }
  return "?";
}

/// Whole microseconds of a span, its begin rounded up and its end down, in the double precision in which HTA adds ts and dur (0.25 us for times since 1970).
Span in_whole_microseconds(Time begin, Time end) {
  const auto us = [](Time t) { return static_cast<double>(static_cast<long double>(t.count()) / 1000); };
  const auto whole = [](double value) { return Time(static_cast<std::int64_t>(value) * 1000); };
  return {whole(std::ceil(us(begin))), whole(std::floor(us(begin) + us(end - begin)))};
}

/// Length of the merged rows: a row that touches those before it joins them; a reversed one counts with its negative length.
Time merged_length(Spans rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  Time total{};
  for (std::size_t i = 0; i < rows.size();) {
    Span group = rows[i++];
    for (; i < rows.size() && rows[i].begin <= group.end; ++i) group.end = std::max(group.end, rows[i].end);
    total += group.end - group.begin;
  }
  return total;
}

struct Row {
  Span time;
  const DeviceOp* op = nullptr;
  HtaType type = HtaType::computation;
  std::int64_t copies = 1;  // HTA's join repeats an operation for each call with its correlation
};

class Hta {
 public:
  explicit Hta(const Profile& profile) : profile_(profile), round_(!profile.whole_microseconds) { choose_rows(); }
  std::optional<HtaMetrics> metrics();

 private:
  void choose_rows();
  [[nodiscard]] Time last_step() const;
  void count_types(HtaMetrics& m) const;
  void count_idle(HtaMetrics& m) const;
  void count_launches(HtaMetrics& m) const;
  [[nodiscard]] Span rounded(Time begin, Time end) const { return round_ ? in_whole_microseconds(begin, end) : Span{begin, end}; }

  const Profile& profile_;
  bool round_;
  Time limit_ = Time::max();                             // host rows from here on are dropped
  std::unordered_map<std::int64_t, std::int64_t> kept_;  // correlations of kept host rows, how often
  std::vector<Row> rows_;
  std::int64_t duplicates_ = 0;
};

/// Start of the last step, on host or device, where there are two names of steps or more.
Time Hta::last_step() const {
  const HostOp* first = nullptr;
  bool several = false;
  Time last = Time::min();
  for (const std::vector<HostOp>* ops : {&profile_.host_ops, &profile_.device_steps}) {
    for (const HostOp& op : *ops) {
      if (!is_step(profile_.names[op.name])) continue;
      if (!first) first = &op;
      several = several || op.name != first->name;
      last = std::max(last, op.begin);
    }
  }
  return several ? last : Time::max();
}

void Hta::choose_rows() {
  limit_ = last_step();
  for (const HostCall& call : profile_.host_calls) {
    if (call.correlation >= 0 && call.begin < limit_) ++kept_[call.correlation];
  }
  for (const DeviceOp& op : profile_.device_ops) {
    const std::int64_t stream = profile_.streams[op.stream].number;
    if (stream == -1 || !op.stream_given) continue;
    std::int64_t copies = 1;
    if (limit_ != Time::max()) {
      const auto kept = kept_.find(op.correlation);
      copies = stream < 0 || op.correlation < 0 || kept == kept_.end() ? 0 : kept->second;
    }
    duplicates_ += std::max<std::int64_t>(0, copies - 1);
    if (copies > 0) rows_.push_back({rounded(op.begin, op.end), &op, type_of(profile_.names[op.name]), copies});
  }
}

void Hta::count_types(HtaMetrics& m) const {
  std::map<HtaType, Spans> spans;
  Spans all;
  Span extent{Time::max(), Time::min()};
  for (const Row& row : rows_) {
    m.sum_by_type[name(row.type)] += row.copies * (row.time.end - row.time.begin);
    spans[row.type].push_back(row.time);
    all.push_back(row.time);
    extent = {std::min(extent.begin, row.time.begin), std::max(extent.end, row.time.end)};
  }
  const Time busy = merged_length(std::move(all));
  m.kernel_time = extent.end - extent.begin;
  m.idle_time = m.kernel_time - busy;
  m.compute_time = merged_length(spans[HtaType::computation]);
  m.non_compute_time = m.kernel_time - m.compute_time - m.idle_time;
  const Spans compute = interval_sets::merge(std::move(spans[HtaType::computation])), comm = interval_sets::merge(std::move(spans[HtaType::communication]));
  const Time in_comm = interval_sets::length(comm);
  const auto count = [](Time t) { return static_cast<double>(t.count()); };
  if (in_comm > Time{}) m.comp_comm_overlap_pctg = 100 * count(interval_sets::overlap(compute, comm)) / count(in_comm);
}

void Hta::count_idle(HtaMetrics& m) const {
  std::map<std::int64_t, std::vector<const Row*>> streams;
  for (const Row& row : rows_) {
    if (row.op->kind != DeviceKind::other) streams[profile_.streams[row.op->stream].number].push_back(&row);
  }
  for (auto& [stream, rows] : streams) {
    std::stable_sort(rows.begin(), rows.end(), [](const Row* a, const Row* b) { return a->time.begin < b->time.begin; });
    HtaIdle& idle = m.idle_by_stream[stream];
    for (const Row* row : rows) idle.kernel_wait += (row->copies - 1) * (row->time.begin - row->time.end);  // between an operation and its copy
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const Time end = rows[i - 1]->time.end, gap = rows[i]->time.begin - end;
      const HostCall* call = profile_.launch_of(*rows[i]->op);
      const bool host = call && rounded(call->begin, call->end).begin > end;
      (host ? idle.host_wait : gap < kConsecutiveKernelDelay ? idle.kernel_wait : idle.other) += gap;
    }
  }
}

void Hta::count_launches(HtaMetrics& m) const {
  for (const Row& row : rows_) {
    const HostCall* call = profile_.launch_of(*row.op);
    if (!call) continue;
    const std::string& called = profile_.names[call->name];
    if (called != "cudaLaunchKernel" && called != "cudaLaunchKernelExC" && called != "cudaMemcpyAsync" && called != "cudaMemsetAsync") continue;
    const Span host = rounded(call->begin, call->end);
    const Time delay = std::max(Time{}, row.time.begin - host.end);
    m.launches.rows += row.copies;
    m.launches.sum_cpu += row.copies * (host.end - host.begin);
    m.launches.sum_gpu += row.copies * (row.time.end - row.time.begin);
    m.launches.sum_delay += row.copies * delay;
    m.launches.max_delay = std::max(m.launches.max_delay, delay);
  }
}

std::optional<HtaMetrics> Hta::metrics() {
  if (rows_.empty()) return {};
  HtaMetrics m;
  m.gpu_rows = static_cast<std::int64_t>(rows_.size()) + duplicates_;
  m.duplicate_rows = duplicates_;
  m.rounded_to_us = round_;
  count_types(m);
  count_idle(m);
  count_launches(m);
  return m;
}

}  // namespace

std::optional<HtaMetrics> hta_metrics(const Profile& profile) { return Hta(profile).metrics(); }

}  // namespace stepcast::trace::profile
