// See explain.hpp.
#include "cli/report/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/inputs.hpp"
#include "cli/report/table.hpp"
#include "hw_models/gemm.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/ordered_json.hpp"
#include "trace/breakdown.hpp"

namespace stepcast::cli {
namespace {

double in_seconds(SimTime time) { return to_seconds(time).in(second); }

/// Names of the losses in the order in which they are shown; gaps follow by cause.
constexpr const char *kMasked = "masked pairs of attention, counted but not computed", *kQuantisation = "tile quantisation of products",
                     *kProducts = "products below peak", *kAttention = "attention below peak", *kMemory = "memory-bound kernels",
                     *kRecomputation = "recomputation", *kOptimizer = "optimizer and clipping",
                     *kContention = "contention: kernels slowed down by transfers and by each other";
constexpr const char* kOrder[] = {kMasked, kQuantisation, kProducts, kAttention, kMemory, kRecomputation, kOptimizer, kContention};

std::string words(trace::GapCause cause) {
  switch (cause) {
    case trace::GapCause::all_gather: return "exposed all-gather";
    case trace::GapCause::reduce_scatter: return "exposed reduce-scatter";
    case trace::GapCause::all_reduce: return "exposed all-reduce";
    case trace::GapCause::launch_bound: return "launch gaps: the host is late";
    case trace::GapCause::data_loader: return "data";
    case trace::GapCause::device_malloc: return "allocator: cudaMalloc and cudaFree";
    case trace::GapCause::allocator_flush: return "allocator: cache given back";
    default: return std::string("gaps: ") + trace::name(cause);
  }
}

class Account {
 public:
  Account(const Prediction& prediction, const Inputs& inputs) : inputs_(inputs), model_(*inputs.model), peak_(prediction.report.peak_flops) {}

  /// A kernel of the compute stream, `share` of which lies in the step.
  void add(const trace::Slice& slice, const hw::KernelShape& shape, SimTime within) {
    const double length = in_seconds(slice.end - slice.begin), share = length > 0 ? in_seconds(within) / length : 1;
    const double alone = std::min(in_seconds(inputs_.prices.kernels[slice.detail].alone), length) * share;
    losses_[kContention] += in_seconds(within) - alone;
    if (slice.recompute) losses_[kRecomputation] += alone;
    else if (slice.phase == trace::Phase::optimizer) losses_[kOptimizer] += alone;
    else add_model(shape, alone, share);
  }
  [[nodiscard]] double computed_s() const { return computed_; }
  [[nodiscard]] double operator[](const char* name) const {
    const auto found = losses_.find(name);
    return found == losses_.end() ? 0 : found->second;
  }

 private:
  void add_model(const hw::KernelShape& shape, double alone, double share) {
    const bool product = shape.kind == hw::KernelKind::gemm;
    const bool attention = shape.kind == hw::KernelKind::attention_forward || shape.kind == hw::KernelKind::attention_backward;
    if (!product && !attention) {
      losses_[kMemory] += alone;
      return;
    }
    const double ideal = std::min(alone, hw::executed_flops(shape).in(flop) / peak_ * share);
    computed_ += ideal;
    const double quantised = product ? (alone - ideal) * quantised_share(shape) : 0;
    if (product) losses_[kQuantisation] += quantised;
    losses_[product ? kProducts : kAttention] += alone - ideal - quantised;
  }

  /// Of what a product takes above its FLOPs at peak: the part that whole tiles and waves instead of fractions explain.
  [[nodiscard]] double quantised_share(const hw::KernelShape& shape) const {
    const hw::GemmRates rates = hw::gemm_rates(model_.gpu(), shape.dtype);
    const double ideal = hw::executed_flops(shape).in(flop) / peak_, actual = hw::gemm_time(shape, rates).in(second);
    hw::GemmRates smooth = rates;
    smooth.wave_weight = 0;
    const double without = hw::gemm_time(shape, smooth).in(second);
    return actual > ideal ? std::clamp((actual - without) / (actual - ideal), 0.0, 1.0) : 0;
  }

  const Inputs& inputs_;
  const hw::CostModel& model_;
  double peak_ = 0, computed_ = 0;
  std::map<std::string, double> losses_;
};

}  // namespace

Explanation explain(const Prediction& prediction) {
  if (!prediction.report.has_peak) throw InputError(prediction.scenario.name, "/fixed_costs", "fixed costs have no peak to explain MFU by");
  if (prediction.report.outcome != "ok" || prediction.result.step_end.size() < 2)
    throw InputError(prediction.scenario.name, "/run/steps", "there is no second step to explain", "two steps at least, and a run that fits");
  const Inputs inputs = inputs_of(prediction.scenario, prediction.program);
  const trace::Trace& trace = prediction.result.trace;
  const auto steps = prediction.result.step_end;
  const SimTime begin = steps[steps.size() - 2], end = steps.back();
  Account account(prediction, inputs);
  for (const trace::Slice& slice : trace.ranks.front().slices) {
    const bool compute = slice.category == trace::Category::kernel && slice.lane == static_cast<std::int16_t>(program::Stream::compute);
    if (compute && slice.end > begin && slice.begin < end)
      account.add(slice, trace.kernels[slice.detail].shape, std::min(slice.end, end) - std::max(slice.begin, begin));
  }
  Explanation explanation{in_seconds(end - begin), prediction.report.model_flops_per_step / prediction.report.peak_flops, {}};
  for (const char* name : kOrder) {
    const double seconds = std::string(name) == kMasked ? account.computed_s() - explanation.ideal_s : account[name];
    if (seconds != 0) explanation.losses.push_back({name, seconds});
  }
  const trace::Breakdown breakdown = trace::break_down(trace, trace.ranks.front(), static_cast<int>(steps.size()) - 1);
  for (std::size_t cause = 0; cause < breakdown.causes.size(); ++cause) {
    if (breakdown.causes[cause].count > 0)
      explanation.losses.push_back({words(static_cast<trace::GapCause>(cause)), in_seconds(breakdown.causes[cause].total)});
  }
  return explanation;
}

OrderedJson to_json(const Explanation& e) {
  OrderedJson json = {{"step_time_s", e.step_s}, {"ideal_s", e.ideal_s}, {"mfu", e.ideal_s / e.step_s}};
  json["losses"] = OrderedJson::array();
  for (const Loss& loss : e.losses) json["losses"].push_back({{"loss", loss.name}, {"seconds", loss.seconds}, {"mfu_points", 100 * loss.seconds / e.step_s}});
  return json;
}

std::string to_text(const Explanation& e) {
  Table table({"", "time", "of the step", "left", ""}, {0, 4});
  double left = 1;
  table.add({"the device's peak", "", "", percent_text(1), bar(1)});
  for (const Loss& loss : e.losses) {
    const double share = loss.seconds / e.step_s;
    left -= share;
    const std::string time = loss.seconds < 0 ? "-" + time_text(-loss.seconds) : time_text(loss.seconds);
    table.add({loss.name, time, fmt::format("{:.1f} %", 100 * share), percent_text(left), bar(std::max(0.0, left))});
  }
  return "From the peak to the MFU: what is not model FLOPs\n" + table.render() +
         fmt::format("  MFU {} is left: {} of model FLOPs in a step of {}\n", percent_text(e.ideal_s / e.step_s), time_text(e.ideal_s), time_text(e.step_s));
}

}  // namespace stepcast::cli
