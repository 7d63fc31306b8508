// Hand-built traces: one rank, times in microseconds, one step unless said otherwise.
#pragma once

#include <string>
#include <utility>

#include "trace/trace.hpp"

namespace stepcast::test {

inline SimTime us(double microseconds) { return to_sim_time(Seconds(microseconds * 1e-6)); }

/// Adds slices lane by lane; `launch` and the device call that follows share a correlation number.
class TraceBuilder {
 public:
  TraceBuilder() {
    trace_.names = {"op", "cudaLaunchKernel", "wait"};
    trace_.kernels = {{{}, "gemm"}, {{}, "copy"}};
    for (auto kind : {hw::CollectiveKind::all_gather, hw::CollectiveKind::reduce_scatter, hw::CollectiveKind::all_reduce}) {
      trace_.collectives.push_back({{kind, hw::Dtype::bf16, 1 << 20, {8, 4}}, hw::name(kind)});
    }
    trace_.streams = {"compute", "pre_unshard", "unshard", "post_backward"};
    trace_.world_size = 32;
    trace_.ranks.emplace_back();
  }

  TraceBuilder& phase(trace::Phase phase) {
    phase_ = phase;
    return *this;
  }
  /// A launch call on the host; the next device slice is what it launched.
  TraceBuilder& launch(double begin, double end) {
    auto& slice = add(begin, end, trace::Category::host_runtime, trace::kHostLane);
    slice.name = 1;
    slice.correlation = pending_ = ++correlation_;
    return *this;
  }
  TraceBuilder& kernel(double begin, double end, std::int16_t lane = 0, std::uint32_t entry = 0) {
    return device(begin, end, trace::Category::kernel, lane, entry);
  }
  TraceBuilder& collective(hw::CollectiveKind kind, double begin, double end, std::int16_t lane = 2) {
    return device(begin, end, trace::Category::collective, lane, static_cast<std::uint32_t>(kind));
  }
  TraceBuilder& wait(trace::HostState state, double begin, double end) {
    auto& slice = add(begin, end, trace::Category::host_wait, trace::kHostLane);
    slice.host_state = state;
    slice.name = 2;
    return *this;
  }
  TraceBuilder& op(double begin, double end) {
    add(begin, end, trace::Category::host_op, trace::kHostLane);
    return *this;
  }
  TraceBuilder& step_ends(double host, double device) {
    const SimTime from = trace_.steps.empty() ? SimTime{} : trace_.steps.back().host_end;
    trace_.steps.push_back({from, us(host), us(device)});
    ++step_;
    return *this;
  }
  TraceBuilder& memory(double time, std::int64_t delta, std::int64_t allocated, std::int64_t reserved) {
    trace_.ranks[0].memory.push_back({us(time), delta, allocated, reserved, 0x7000});
    return *this;
  }

  trace::Trace& trace() { return trace_; }
  const trace::RankTrace& rank() const { return trace_.ranks[0]; }

 private:
  TraceBuilder& device(double begin, double end, trace::Category category, std::int16_t lane, std::uint32_t entry) {
    auto& slice = add(begin, end, category, lane);
    slice.detail = entry;
    slice.correlation = std::exchange(pending_, 0);
    return *this;
  }
  trace::Slice& add(double begin, double end, trace::Category category, std::int16_t lane) {
    trace::Slice slice;
    slice.begin = us(begin);
    slice.end = us(end);
    slice.category = category;
    slice.lane = lane;
    slice.phase = phase_;
    slice.step = step_;
    trace_.ranks[0].slices.push_back(slice);
    return trace_.ranks[0].slices.back();
  }

  trace::Trace trace_;
  trace::Phase phase_ = trace::Phase::forward;
  std::uint32_t correlation_ = 0, pending_ = 0;
  std::uint8_t step_ = 0;
};

}  // namespace stepcast::test
