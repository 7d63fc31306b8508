// See host_profile.hpp.
#include "calibration/host_profile.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "hw_models/input_error.hpp"

namespace stepcast::calibration {
namespace {

// What costs the host one call of the executor.
constexpr std::array<std::string_view, 8> kCalls{"host_op_forward",   "host_op_backward",     "host_op_compiled",  "host_op_optimizer",
                                                 "host_extra_launch", "host_collective_call", "host_event_record", "host_stream_wait"};

class Filler {
 public:
  Filler(HostProfiles& profiles, const MeasurementFile& file) : profiles_(profiles), file_(file) {}

  void add(const Measurement& row) {
    const hw::Constant time = measured(row.mean.value_or(row.time).si());  // a step takes the sum of what its kernels take on average
    switch (row.timed) {
      case Timed::kernel: return kernel(row, time);
      case Timed::collective: return collective(row, time);
      case Timed::launch_call:
        for (const std::string_view call : kCalls) set(profiles_.node, call, time);
        return;
      case Timed::launch_latency: return set(profiles_.gpu, "launch_latency", time);
      case Timed::device_malloc: mallocs_.push_back(row); return;
      case Timed::device_free: frees_.push_back(row.time.si()); return;
      case Timed::cached_allocation: return set(profiles_.node, "host_allocation", time);
    }
  }

  /// What takes more rows than one.
  void add_segments() {
    if (!mallocs_.empty()) {
      const SegmentTime taken = segment_time(mallocs_);
      set(profiles_.gpu, "device_malloc", measured(taken.fixed.si()));
      set(profiles_.gpu, "device_malloc_per_gib", measured(taken.per_gib.si()));
    }
    if (frees_.empty()) return;
    const auto middle = frees_.begin() + static_cast<std::ptrdiff_t>(frees_.size() / 2);
    std::nth_element(frees_.begin(), middle, frees_.end());
    set(profiles_.gpu, "device_free", measured(*middle));
  }

  void add_machine() {
    if (file_.processors) set(profiles_.gpu, "shared_processors", measured(static_cast<double>(*file_.processors)));
    if (file_.memory_bytes) set(profiles_.gpu, "device_memory", measured(static_cast<double>(*file_.memory_bytes)));
  }

 private:
  [[nodiscard]] hw::Constant measured(double value) const {
    return {value, "stepcast bench: " + file_.file.substr(file_.file.find_last_of('/') + 1), hw::Origin::measured, {}};
  }

  static void set(hw::Profile& profile, std::string_view name, const hw::Constant& constant) {
    profile.constants.insert_or_assign(std::string(name), constant);
  }

  void kernel(const Measurement& row, const hw::Constant& time) {
    auto& table = profiles_.gpu.kernels;
    const auto same = [&](const hw::MeasuredKernel& other) { return other.shape == row.kernel && other.name == row.name && other.ranks == row.ranks; };
    if (std::any_of(table.begin(), table.end(), same)) twice(row);
    table.push_back({row.name, row.kernel, row.ranks, time});
  }

  void collective(const Measurement& row, const hw::Constant& time) {
    auto& table = profiles_.node.collectives;
    if (std::any_of(table.begin(), table.end(), [&](const hw::MeasuredCollective& other) { return other.shape == row.collective; })) twice(row);
    table.push_back({row.collective, time});
  }

  [[noreturn]] void twice(const Measurement& row) const {
    throw InputError(file_.file, "/rows/" + std::to_string(row.line), "this operation was measured before", "leave one of the two out");
  }

  HostProfiles& profiles_;
  const MeasurementFile& file_;
  std::vector<Measurement> mallocs_;
  std::vector<double> frees_;
};

}  // namespace

/// With u = 1/t and v = size/t it minimises the sum of (fixed u + per_gib v - 1)^2.
SegmentTime segment_time(std::span<const Measurement> rows) {
  double uu = 0, uv = 0, vv = 0, u_sum = 0, v_sum = 0;
  for (const Measurement& row : rows) {
    const double u = 1 / row.time.si(), v = Bytes(static_cast<double>(row.bytes)) / gibibyte * u;
    uu += u * u, uv += u * v, vv += v * v;
    u_sum += u, v_sum += v;
  }
  const double determinant = uu * vv - uv * uv;
  const double fixed = determinant > 1e-12 * uu * vv ? (u_sum * vv - v_sum * uv) / determinant : 0;
  if (fixed <= 0) return {Seconds(0), Seconds(v_sum / vv)};
  const double per_gib = (v_sum * uu - u_sum * uv) / determinant;
  if (per_gib <= 0) return {Seconds(u_sum / uu), Seconds(0)};
  return {Seconds(fixed), Seconds(per_gib)};
}

HostProfiles host_profiles(HostProfiles base, const std::vector<MeasurementFile>& files) {
  for (const MeasurementFile& file : files) {
    Filler filler(base, file);
    filler.add_machine();
    for (const Measurement& row : file.rows) {
      if (!row.both_passes) filler.add(row);
    }
    filler.add_segments();
  }
  if (base.gpu.kernels.empty() && base.node.collectives.empty()) throw InputError("calibrate", "", "no kernel and no collective was measured");
  return base;
}

}  // namespace stepcast::calibration
