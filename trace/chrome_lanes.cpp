// Each lane is written in the order of its begins, the enclosing event first. Forms: profiles of PyTorch 2.x. Test: tests/unit/chrome_writer_test.cpp.
#include "trace/chrome_lanes.hpp"

#include <algorithm>
#include <string>
#include <tuple>

#include "trace/kernel_arguments.hpp"
#include "trace/kineto_names.hpp"

namespace stepcast::trace {

namespace {

/// Of host slices with equal times: marks outside, then ops, then what happens in them.
int depth(Category category) {
  switch (category) {
    case Category::annotation: return 0;
    case Category::host_op: return 1;
    case Category::host_wait: return 2;
    default: return 3;
  }
}

template <class Outer>
auto outer_first(const Outer& a, int depth_a, const Outer& b, int depth_b) {
  return std::tuple(a.begin, b.end, depth_a) < std::tuple(b.begin, a.end, depth_b);
}

}  // namespace

ChromeLanes::ChromeLanes(const Trace& trace, const RankTrace& rank, int device, int pid, JsonOut& out)
    : trace_(trace), rank_(rank), device_(device), pid_(pid), out_(out) {
  for (const CollectiveInfo& info : trace_.collectives) collective_names_.push_back(nccl_kernel_name(info.shape));
  split_lanes();
}

void ChromeLanes::write() {
  write_host();
  for (std::size_t lane = 0; lane < streams_.size(); ++lane) write_stream(lane);
}

void ChromeLanes::split_lanes() {
  for (const Slice& slice : rank_.slices) {
    if (slice.lane < 0) {
      host_.push_back(&slice);
      continue;
    }
    const auto lane = static_cast<std::size_t>(slice.lane);
    if (lane >= streams_.size()) streams_.resize(lane + 1);
    streams_[lane].push_back(&slice);
    if (slice.correlation == 0) continue;
    Call& call = calls_[slice.correlation];
    call.launches = true;
    if (slice.category == Category::kernel) call.kernel = &slice;
  }
  std::stable_sort(host_.begin(), host_.end(), [](const Slice* a, const Slice* b) { return outer_first(*a, depth(a->category), *b, depth(b->category)); });
}

void ChromeLanes::write_host() {
  for (std::size_t i = 0; i < host_.size(); ++i) {
    const Slice* slice = host_[i];
    while (!open_.empty() && open_.back().first <= slice->begin) open_.pop_back();
    if (slice->category == Category::host_wait || (slice->host_state != HostState::working && slice->correlation == 0)) write_block(*slice);
    else write_host_slice(*slice, kernel_launched_in(i));
  }
}

/// What the first call launches that lies within the host slice at this place; waits may come before it.
const Slice* ChromeLanes::kernel_launched_in(std::size_t place) const {
  for (std::size_t i = place + 1; i < host_.size() && host_[i]->begin < host_[place]->end; ++i) {
    if (host_[i]->correlation == 0 || host_[i]->end > host_[place]->end) continue;
    const auto call = calls_.find(host_[i]->correlation);
    return call == calls_.end() ? nullptr : call->second.kernel;
  }
  return nullptr;
}

void ChromeLanes::write_host_slice(const Slice& slice, const Slice* kernel) {
  const std::string_view name = name_of(slice);
  const std::string_view category = host_category(slice, name);
  if (category != "cuda_runtime") return write_range(slice, category.data(), name, kernel);
  // A launch of a real backend has the name of its operator: that is written around it, as a profiler would.
  const auto call = calls_.find(slice.correlation);
  const bool named = slice.correlation != 0 && call != calls_.end() && call->second.launches && !name.starts_with("cuda");
  if (named) write_range(slice, "cpu_op", name, call->second.kernel);
  write_launch(slice, named ? "cudaLaunchKernel" : name);
  if (named) open_.pop_back();
}

void ChromeLanes::write_range(const Slice& slice, std::string_view category, std::string_view name, const Slice* kernel) {
  event(category.data(), name, pid_, pid_, slice.begin, slice.end).print(",\"args\":{{\"External id\":{}", ++external_);
  if (kernel && category == "cpu_op") write_operator(*kernel, name);
  out_.print("}}}}");
  if (category == "cpu_op") open_.emplace_back(slice.end, external_);
}

/// Operators of the forward, and of its repetition in the backward, have a number of the autograd graph.
void ChromeLanes::write_operator(const Slice& kernel, std::string_view op) {
  out_.print("{}", operand_arguments(trace_.kernels.at(kernel.detail).shape, op));
  if (kernel.lane == 0 && (kernel.phase == Phase::forward || kernel.recompute)) out_.print(",\"Sequence number\":{},\"Fwd thread id\":0", sequence_++);
}

void ChromeLanes::write_block(const Slice& slice) {
  const BlockForm form = block_form(slice.host_state, trace_.loader_workers);
  event(form.category, form.name, pid_, pid_, slice.begin, slice.end).print("}}");
  if (form.inner) event("cuda_runtime", form.inner, pid_, pid_, slice.begin, slice.end).print("}}");
}

void ChromeLanes::write_launch(const Slice& slice, std::string_view name) {
  event("cuda_runtime", name, pid_, pid_, slice.begin, slice.end);
  const std::uint64_t op = open_.empty() ? 0 : open_.back().second;
  if (slice.correlation == 0) {
    out_.print("}}");
    return;
  }
  out_.print(",\"args\":{{");
  if (op != 0) out_.print("\"External id\":{},", op);
  out_.print("\"correlation\":{}}}}}", slice.correlation);
  Call& call = calls_[slice.correlation];
  call.op = op;
  call.made = true;
  if (!call.launches) return;
  out_.next_event().print("{{\"ph\":\"s\",\"id\":{},\"pid\":{},\"tid\":{},\"ts\":", slice.correlation, pid_, pid_).microseconds(to_nanoseconds(slice.begin));
  out_.print(",\"cat\":\"ac2g\",\"name\":\"ac2g\"}}");
}

void ChromeLanes::write_stream(std::size_t lane) {
  auto& work = streams_[lane];
  std::stable_sort(work.begin(), work.end(), [](const Slice* a, const Slice* b) { return a->begin < b->begin; });
  std::vector<Range> ranges;
  annotate(work, lane == 0, ranges);
  for (const Slice* slice : work) ranges.push_back({slice->begin, slice->end, slice, 3});
  std::stable_sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return outer_first(a, a.depth, b, b.depth); });
  const int stream = kFirstStream + static_cast<int>(lane);
  for (const Range& range : ranges) {
    if (range.slice) write_device_slice(*range.slice, stream);
    else write_annotation(range, stream);
  }
}

/// Ranges over runs of work of one step, and of one phase and unit. A range closes where the next run begins or, if earlier, where its work ended.
void ChromeLanes::annotate(const std::vector<const Slice*>& work, bool phases, std::vector<Range>& out) const {
  const auto run = [&](int at_depth, auto key, auto title) {
    for (std::size_t first = 0; first < work.size();) {
      std::size_t next = first;
      SimTime end = work[first]->end;
      for (; next < work.size() && key(*work[next]) == key(*work[first]); ++next) end = std::max(end, work[next]->end);
      if (next < work.size()) end = std::min(end, work[next]->begin);
      const std::string text = title(*work[first]);
      if (!text.empty() && end > work[first]->begin) out.push_back({work[first]->begin, end, nullptr, at_depth, text});
      first = next;
    }
  };
  run(
      0, [](const Slice& s) { return s.step; }, [](const Slice& s) { return fmt::format("ProfilerStep#{}", s.step); });
  if (!phases) return;
  run(
      1, [](const Slice& s) { return std::pair(s.step, s.phase); },
      [](const Slice& s) { return s.phase == Phase::none ? std::string() : std::string(name(s.phase)); });
  run(
      2, [](const Slice& s) { return std::tuple(s.step, s.phase, s.unit, s.recompute); },
      [](const Slice& s) { return s.unit < 0 ? std::string() : fmt::format("{} unit {}", s.recompute ? "recompute" : name(s.phase), s.unit); });
}

void ChromeLanes::write_device_slice(const Slice& slice, int stream) {
  const bool collective = slice.category == Category::collective;
  const std::string_view name = name_of(slice);
  event(collective ? "kernel" : kernel_category(name), name, device_, stream, slice.begin, slice.end).print(",\"args\":{{");
  const auto call = slice.correlation == 0 ? calls_.end() : calls_.find(slice.correlation);
  if (call != calls_.end() && call->second.op != 0) out_.print("\"External id\":{},", call->second.op);
  out_.print("\"queued\":0,\"device\":{},\"context\":1,\"stream\":{},\"correlation\":{}", device_, stream, slice.correlation);
  if (collective) write_collective(slice);
  else out_.print("{}", traffic_arguments(trace_.kernels.at(slice.detail).shape));
  out_.print(",\"phase\":\"{}\"", trace::name(slice.phase));
  if (slice.unit >= 0) out_.print(",\"unit\":{}", slice.unit);
  if (slice.recompute) out_.print(",\"recompute\":true");
  out_.print("}}}}");
  arrow(slice, stream);
}

void ChromeLanes::write_collective(const Slice& slice) {
  const CollectiveInfo& info = trace_.collectives.at(slice.detail);
  const hw::CollectiveShape& shape = info.shape;
  const MessageSize elements = message_elements(shape);
  out_.print(",\"Collective name\":\"{}\",\"In msg nelems\":{},\"Out msg nelems\":{},\"Group size\":{},\"dtype\":\"{}\"", c10d_name(shape.kind), elements.in,
             elements.out, shape.group.ranks(), torch_name(shape.dtype));
  const auto ranks = group_ranks(shape.group.ranks(), info.strided, rank_.rank, trace_.world_size);
  if (!ranks.empty()) out_.print(",\"Process Group Ranks\":\"[{}]\"", fmt::join(ranks, ", "));
}

void ChromeLanes::write_annotation(const Range& range, int stream) {
  event("gpu_user_annotation", range.name, device_, stream, range.begin, range.end).print("}}");
}

/// The arrow's head; its tail was written with the launch call, without which there is no arrow.
void ChromeLanes::arrow(const Slice& slice, int stream) {
  const auto call = slice.correlation == 0 ? calls_.end() : calls_.find(slice.correlation);
  if (call == calls_.end() || !call->second.made) return;
  out_.next_event().print("{{\"ph\":\"f\",\"id\":{},\"pid\":{},\"tid\":{},\"ts\":", slice.correlation, device_, stream);
  out_.microseconds(to_nanoseconds(slice.begin)).print(",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"bp\":\"e\"}}");
}

/// Opens a complete event; the caller adds arguments and closes it.
JsonOut& ChromeLanes::event(const char* category, std::string_view name, int pid, int tid, SimTime begin, SimTime end) {
  const std::int64_t from = to_nanoseconds(begin), to = to_nanoseconds(end);
  out_.next_event().print("{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":", category).string(name);
  out_.print(",\"pid\":{},\"tid\":{},\"ts\":", pid, tid).microseconds(from).print(",\"dur\":").microseconds(to - from);
  return out_;
}

std::string_view ChromeLanes::name_of(const Slice& slice) const {
  switch (slice.category) {
    case Category::kernel: {
      const KernelInfo& kernel = trace_.kernels.at(slice.detail);
      const std::string_view library = attention_kernel_name(kernel.shape);
      return library.empty() ? std::string_view(kernel.name) : library;
    }
    case Category::collective: return collective_names_.at(slice.detail);
    default: return trace_.names.at(slice.name);
  }
}

}  // namespace stepcast::trace
