// Test: tests/unit/profile_passes_test.cpp.
#include "trace/profile/workload.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "trace/profile/metrics.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

Coverage step_ranges(const std::vector<Step>& steps) {
  Spans spans;
  for (const Step& step : steps) spans.push_back(step.time);
  return Coverage(std::move(spans));
}

/// RCCL runs most collectives by one kernel, and all-to-alls are sends and receives: what was asked for the arguments say.
std::string told_type(const std::string& of_kernel, const CollectiveArguments& arguments) {
  if (of_kernel != "generic" && of_kernel != "other" && of_kernel != "sendrecv") return of_kernel;
  const std::string_view told = collective_type(arguments.name);
  return told == "other" ? of_kernel : std::string(told);
}

class Counter {
 public:
  Counter(const Profile& profile, const Passes& passes) : p_(profile), passes_(passes), steps_(step_ranges(steps_of(profile))) {}

  [[nodiscard]] bool counts(Time at) const { return steps_.spans().empty() || steps_.within(at, at + Time(1)) > Time{}; }

  void host_op(const HostOp& op) {
    if (op.shapes == kNoIndex || op.annotation || !counts(op.begin)) return;
    const std::string &name = p_.names[op.name], &dims = p_.shapes[op.shapes];
    const auto dtype = op.types == kNoIndex ? std::nullopt : dtype_of(p_.types[op.types]);
    const Pass pass = passes_.at(op.thread, op.begin);
    if (const auto lookup = lookup_of(name, dims)) ++lookups_[{lookup->rows, lookup->width, lookup->batch, lookup->length}];
    // Where there is no kernel for grouped products, their operator calls one for each group.
    const bool of_group = grouped_ends_.contains(op.thread) && op.begin < grouped_ends_[op.thread];
    const auto product = of_group ? std::nullopt : product_of(name, dims);
    if (product && is_grouped_product(name)) grouped_ends_[op.thread] = op.end;
    // PyTorch's operator of attention calls the one of the library, with the same operands: the outer counts.
    const bool inner = attention_ends_.contains(op.thread) && op.begin < attention_ends_[op.thread];
    const auto call = inner ? std::nullopt : attention_of(name, dims);
    if (call) attention_ends_[op.thread] = op.end;
    if (product) ++products_[{*product, dtype, pass, name.starts_with("aten::addmm")}];
    if (call) ++attention_[{*call, dtype, pass}];
    if (product || call) issued_.push_back({op.begin, pass, {}});
  }

  void device_op(const DeviceOp& op) {
    const HostCall* launch = op.kind == DeviceKind::communication ? p_.launch_of(op) : nullptr;
    const Time at = launch ? launch->begin : op.begin;
    if (op.kind != DeviceKind::communication || !counts(at)) return;
    SentMessage message{std::string(collective_type(p_.names[op.name])), 0, 0, {}};
    if (op.collective != kNoIndex) {
      const CollectiveArguments& c = p_.collectives[op.collective];
      message.type = told_type(message.type, c);
      message.bytes = message_bytes(c, message.type);
      message.ranks = std::max<std::int64_t>(0, c.group_size);
      message.dtype = dtype_of_collective(c.dtype);
    }
    const auto [place, added] = messages_.emplace(message, static_cast<std::uint32_t>(messages_.size()));
    issued_.push_back({at, passes_.of(p_, op), place->second});
  }

  Workload result() {
    Workload out;
    out.steps_marked = !steps_.spans().empty();
    out.steps = std::max<std::int64_t>(1, static_cast<std::int64_t>(steps_of(p_).size()));
    for (const auto& [key, count] : products_) out.products.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key), count});
    for (const auto& [key, count] : attention_) out.attention.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
    for (const auto& [key, count] : lookups_) out.lookups.push_back({{std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key)}, count});
    out.messages.resize(messages_.size());
    for (const auto& [message, place] : messages_) out.messages[place] = message;
    std::stable_sort(issued_.begin(), issued_.end(), [](const Issued& a, const Issued& b) { return a.at < b.at; });
    out.order = std::move(issued_);
    return out;
  }

 private:
  const Profile& p_;
  const Passes& passes_;
  Coverage steps_;
  std::map<std::tuple<Product, std::optional<hw::Dtype>, Pass, bool>, std::int64_t> products_;
  std::map<std::tuple<AttentionCall, std::optional<hw::Dtype>, Pass>, std::int64_t> attention_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, std::int64_t> lookups_;
  std::map<SentMessage, std::uint32_t> messages_;
  std::vector<Issued> issued_;
  std::map<std::uint32_t, Time> attention_ends_, grouped_ends_;  // by thread, of the last operator of attention, and of grouped products
};

}  // namespace

Workload workload_of(const Profile& profile, std::uint32_t device, const Passes& passes) {
  Counter counter(profile, passes);
  for (const HostOp& op : profile.host_ops) counter.host_op(op);
  for (const DeviceOp& op : profile.device_ops) {
    if (profile.streams[op.stream].device == device) counter.device_op(op);
  }
  return counter.result();
}

bool mentions(const Profile& profile, std::string_view text) {
  for (std::uint32_t i = 0; i < profile.names.size(); ++i) {
    if (profile.names[i].find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace stepcast::trace::profile
