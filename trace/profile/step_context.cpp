// Test: tests/unit/profile_finer_causes_test.cpp.
#include "trace/profile/step_context.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

constexpr int kBetween = 64;  // ops between the norms and the scaling: stack, add, clamp, reads of the norm

/// Clipping on one thread: from the first norm of gradients to the end of the scaling that follows, and of a wait right behind it.
class ClipFinder {
 public:
  explicit ClipFinder(Spans& out) : out_(out) {}
  void op(const std::string& name, Span time) {
    if (time.end <= inner_) return;  // within an op that was counted
    if (is_norm_of_gradients(name)) {
      if (!open_ || scaled_) close();
      if (!open_) window_ = time, open_ = true;
      extend(time);
      others_ = 0;
    } else if (open_ && is_scaling(name)) {
      scaled_ = true;
      extend(time);
    } else if (open_ && (scaled_ || ++others_ > kBetween)) {
      close();
    }
  }
  void wait(Span time) {
    if (open_ && time.end > inner_) extend(time);
  }
  void close() {
    if (open_ && scaled_) out_.push_back(window_);
    open_ = scaled_ = false;
  }

 private:
  void extend(Span time) { inner_ = window_.end = std::max(window_.end, time.end); }

  Spans& out_;
  Span window_;
  Time inner_ = Time::min();
  bool open_ = false, scaled_ = false;
  int others_ = 0;
};

/// One thing that a thread did: an op, or a wait.
struct Deed {
  Span time;
  std::uint32_t name = 0;
  bool wait = false;
};

Spans clips_of(const Profile& profile) {
  std::vector<bool> of_clips(profile.threads.size());
  for (const HostOp& op : profile.host_ops) {
    if (!op.annotation && is_norm_of_gradients(profile.names[op.name])) of_clips[op.thread] = true;
  }
  std::map<std::uint32_t, std::vector<Deed>> threads;
  for (const HostOp& op : profile.host_ops) {
    if (!op.annotation && of_clips[op.thread]) threads[op.thread].push_back({{op.begin, op.end}, op.name, false});
  }
  for (const HostCall& call : profile.host_calls) {
    if (call.runtime && of_clips[call.thread] && kind_of_call(profile.names[call.name]) == CallKind::synchronise)
      threads[call.thread].push_back({{call.begin, call.end}, call.name, true});
  }
  Spans clips;
  for (auto& [thread, deeds] : threads) {
    std::stable_sort(deeds.begin(), deeds.end(), [](const Deed& a, const Deed& b) { return a.time.begin < b.time.begin; });
    ClipFinder finder(clips);
    for (const Deed& deed : deeds) {
      if (deed.wait) finder.wait(deed.time);
      else finder.op(profile.names[deed.name], deed.time);
    }
    finder.close();
  }
  return clips;
}

}  // namespace

StepContext::StepContext(const Profile& profile) : clips_(clips_of(profile)) {
  Spans optimizer;
  for (const HostOp& op : profile.host_ops) {
    const std::string& name = profile.names[op.name];
    if (is_optimizer(name)) optimizer.push_back({op.begin, op.end});
    if (is_step(name)) steps_.push_back(op.begin);
  }
  optimizer_ = Coverage(std::move(optimizer));
  std::sort(steps_.begin(), steps_.end());
}

bool StepContext::boundary(Time before, Time after) const {
  const auto first = std::upper_bound(steps_.begin(), steps_.end(), before);
  return first != steps_.end() && *first <= after;
}

}  // namespace stepcast::trace::profile
