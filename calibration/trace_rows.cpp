// See trace_rows.hpp.
#include "calibration/trace_rows.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "hw_models/input_error.hpp"
#include "hw_models/memory_class_names.hpp"
#include "trace/profile/coverage.hpp"
#include "trace/profile/import.hpp"
#include "trace/profile/passes.hpp"
#include "trace/profile/processes.hpp"
#include "trace/profile/vocabulary.hpp"
#include "trace/profile/workload.hpp"

namespace stepcast::calibration {

namespace {

namespace profile = trace::profile;
using profile::DeviceKind;
using profile::DeviceOp;
using profile::Time;

constexpr std::size_t kEnoughLaunches = 20;
constexpr double kLargestMessage = 1e15;  // bytes: what claims more is no message

Seconds seconds(Time time) { return Seconds(static_cast<double>(time.count()) * 1e-9); }

Time median(std::vector<Time> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

struct KernelName {
  std::string_view part;
  hw::AttentionKernel kernel;
};
constexpr std::array kAttentionKernels = {
    KernelName{"FlashAttnFwdSm90", hw::AttentionKernel::flash3}, KernelName{"FlashAttnBwdSm90", hw::AttentionKernel::flash3},
    KernelName{"flash_fwd", hw::AttentionKernel::flash2},        KernelName{"flash_bwd", hw::AttentionKernel::flash2},
    KernelName{"fmha_cutlass", hw::AttentionKernel::efficient},  KernelName{"fmha_fwd_loop", hw::AttentionKernel::flash1},
    KernelName{"fmha_bwd_loop", hw::AttentionKernel::flash1},    KernelName{"_attn_fwd", hw::AttentionKernel::triton},
    KernelName{"_attn_bwd", hw::AttentionKernel::triton}};

hw::AttentionKernel attention_kernel(std::string_view name) {
  const auto at =
      std::find_if(kAttentionKernels.begin(), kAttentionKernels.end(), [name](const KernelName& k) { return name.find(k.part) != std::string_view::npos; });
  return at == kAttentionKernels.end() ? hw::AttentionKernel::none : at->kernel;
}

std::optional<hw::CollectiveKind> collective_kind(std::string_view type) {
  if (type == "allgather") return hw::CollectiveKind::all_gather;
  if (type == "reducescatter") return hw::CollectiveKind::reduce_scatter;
  return type == "allreduce" ? std::optional(hw::CollectiveKind::all_reduce) : std::nullopt;
}

/// Of each operation of the device: another computes or copies at the same time.
std::vector<bool> shared_times(const profile::Profile& p) {
  std::vector<bool> shared(p.device_ops.size());
  std::vector<std::size_t> longest(p.devices.size(), p.device_ops.size());  // of those that began: the one that ends last
  for (std::size_t i = 0; i < p.device_ops.size(); ++i) {
    const DeviceOp& op = p.device_ops[i];
    if (op.kind == DeviceKind::communication || op.kind == DeviceKind::other) continue;
    std::size_t& last = longest[p.streams[op.stream].device];
    if (last < i && p.device_ops[last].end > op.begin) shared[last] = shared[i] = true;
    if (last > i || p.device_ops[last].end < op.end) last = i;
  }
  return shared;
}

/// Times of one profile by what was timed.
class TraceRows {
 public:
  TraceRows(const profile::Profile& p, MeasurementFile& file) : p_(p), file_(file), passes_(p) {
    for (const profile::HostOp& op : p.host_ops) {
      if (op.shapes != profile::kNoIndex && op.external_id != profile::kNone) shaped_[op.external_id] = &op;
    }
    for (std::uint32_t device = 0; device < p.devices.size(); ++device) {
      profile::Spans spans;
      for (const DeviceOp& op : p.device_ops) {
        if (op.kind == DeviceKind::communication && p.streams[op.stream].device == device) spans.push_back({op.begin, op.end});
      }
      communication_.emplace_back(std::move(spans));
    }
  }

  void take(std::size_t number) {
    const DeviceOp& op = p_.device_ops[number];
    if (op.kind == DeviceKind::communication) return collective(op);
    if (op.kind != DeviceKind::compute) return;
    if (communication_[p_.streams[op.stream].device].within(op.begin, op.end) > Time{}) return leave_out("beside communication, which slows it down");
    if (shared_[number]) return leave_out("beside another kernel or copy");
    if (op.traffic != profile::kNoIndex) return memory_bound(op);
    const auto host = op.external_id == profile::kNone ? shaped_.end() : shaped_.find(op.external_id);
    if (host == shaped_.end()) return leave_out("a kernel of an operator without recorded shapes");
    Call& call = calls_[op.external_id];
    call.op = host->second;
    call.time += op.end - op.begin;
    const hw::AttentionKernel attention = attention_kernel(p_.names[op.name]);
    if (attention != hw::AttentionKernel::none) call.attention = attention;
  }

  void finish() {
    for (const auto& [id, call] : calls_) shaped_call(call);
    for (auto& [shape, times] : kernels_) {
      Measurement row;
      row.kernel = shape;
      add(std::move(row), median(std::move(times)));
    }
    for (const auto& [shape, time] : collectives_) {
      Measurement row;
      row.timed = Timed::collective;
      row.collective = shape;
      add(std::move(row), time);
    }
    launches();
  }

 private:
  struct Call {
    const profile::HostOp* op = nullptr;
    Time time{};
    hw::AttentionKernel attention = hw::AttentionKernel::none;
  };

  void leave_out(const char* reason) { ++file_.left_out[reason]; }

  void add(Measurement row, Time time) {
    if (time <= Time{}) return leave_out("a time of zero");
    row.time = seconds(time);
    row.looped = false;
    row.gpu = p_.header.gpus.empty() ? "" : p_.header.gpus.begin()->second;
    file_.rows.push_back(std::move(row));
  }

  void memory_bound(const DeviceOp& op) {
    const profile::Traffic& traffic = p_.traffics[op.traffic];
    const auto memory = hw::memory_class(traffic.memory_class);
    if (!memory) return leave_out("a memory-bound kernel of an unknown class");
    hw::KernelShape shape;
    shape.memory = *memory;
    shape.read_bytes = traffic.read;
    shape.write_bytes = traffic.written;
    kernels_[shape].push_back(op.end - op.begin);
  }

  void shaped_call(const Call& call) {
    const std::string &name = p_.names[call.op->name], &dims = p_.shapes[call.op->shapes];
    const auto dtype = call.op->types == profile::kNoIndex ? std::nullopt : profile::dtype_of(p_.types[call.op->types]);
    hw::KernelShape shape;
    if (const auto product = profile::product_of(name, dims)) {
      shape.kind = hw::KernelKind::gemm;
      shape.batch = product->batch;
      shape.m = product->m;
      shape.n = product->n;
      shape.k = product->k;
      shape.backward = passes_.at(call.op->thread, call.op->begin) == profile::Pass::backward;
    } else if (const auto attention = profile::attention_of(name, dims)) {
      if (call.attention == hw::AttentionKernel::none) return leave_out("attention by an unknown kernel");
      if (attention->queries != attention->keys) return leave_out("attention with other keys than queries");
      shape.kind = attention->backward ? hw::KernelKind::attention_backward : hw::KernelKind::attention_forward;
      shape.attention = call.attention;
      shape.causal = true;  // no shape tells; decoders are
      shape.batch = attention->batch;
      shape.m = attention->queries;
      shape.n = attention->heads;
      shape.k = attention->head_dim;
      shape.kv_heads = attention->kv_heads;
    } else {
      return leave_out("an operator that no formula is compared with by its shapes");
    }
    if (!dtype) return leave_out("a product whose type is not recorded");
    shape.dtype = *dtype;
    kernels_[shape].push_back(call.time);
  }

  void collective(const DeviceOp& op) {
    const auto kind = collective_kind(profile::collective_type(p_.names[op.name]));
    if (!kind || op.collective == profile::kNoIndex) return leave_out("a collective without a recorded message, or without a formula");
    const profile::CollectiveArguments& arguments = p_.collectives[op.collective];
    hw::CollectiveShape shape;
    shape.kind = *kind;
    const double bytes = profile::message_bytes(arguments, profile::collective_type(p_.names[op.name]));
    shape.bytes = bytes < kLargestMessage ? static_cast<std::int64_t>(bytes) : 0;
    shape.dtype = profile::dtype_of_collective(arguments.dtype).value_or(hw::Dtype::bf16);
    if (shape.bytes == 0 || arguments.group_size < 2 || arguments.group_size > (1 << 17))
      return leave_out("a collective without a recorded message, or without a formula");
    shape.group = {0, static_cast<std::int32_t>(arguments.group_size)};
    const auto [at, added] = collectives_.emplace(shape, op.end - op.begin);
    if (!added) at->second = std::min(at->second, op.end - op.begin);
  }

  void launches() {
    std::vector<Time> calls;
    for (const DeviceOp& op : p_.device_ops) {
      const profile::HostCall* call = op.kind == DeviceKind::compute ? p_.launch_of(op) : nullptr;
      if (call && p_.names[call->name].find("Launch") != std::string::npos) calls.push_back(call->end - call->begin);
    }
    if (calls.size() < kEnoughLaunches) return;
    Measurement row;
    row.timed = Timed::launch_call;
    add(std::move(row), median(std::move(calls)));
  }

  const profile::Profile& p_;
  MeasurementFile& file_;
  profile::Passes passes_;
  std::unordered_map<std::int64_t, const profile::HostOp*> shaped_;
  std::vector<bool> shared_ = shared_times(p_);   // by operation of the device
  std::vector<profile::Coverage> communication_;  // by device
  std::map<std::int64_t, Call> calls_;            // by External id
  std::map<hw::KernelShape, std::vector<Time>> kernels_;
  std::map<hw::CollectiveShape, Time> collectives_;
};

}  // namespace

MeasurementFile trace_measurements(const profile::Profile& profile, const std::string& file) {
  MeasurementFile result;
  result.file = file;
  result.format = "trace";
  TraceRows rows(profile, result);
  for (std::size_t i = 0; i < profile.device_ops.size(); ++i) rows.take(i);
  rows.finish();
  return result;
}

MeasurementFile read_traces(const std::string& path) {
  MeasurementFile all;
  all.file = path;
  all.format = "trace";
  for (const profile::Input& input : profile::inputs_at(path)) {
    const auto source = input.open();
    for (const profile::Profile& process : profile::by_process(profile::import_profile(*source, input.label))) {
      MeasurementFile one = trace_measurements(process, path);
      all.rows.insert(all.rows.end(), std::make_move_iterator(one.rows.begin()), std::make_move_iterator(one.rows.end()));
      for (const auto& [reason, count] : one.left_out) all.left_out[reason] += count;
    }
  }
  return all;
}

bool looks_like_trace(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return true;
  std::ifstream file(path, std::ios::binary);
  std::string head(4096, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  if (head.starts_with("\x1f\x8b") || head.starts_with("PK\x03\x04")) return true;
  for (const char* key : {"\"traceEvents\"", "\"deviceProperties\"", "\"distributedInfo\"", "\"baseTimeNanoseconds\""}) {
    if (head.find(key) != std::string::npos) return true;
  }
  return false;
}

}  // namespace stepcast::calibration
