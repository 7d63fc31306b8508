// Answers of must_be_true.hpp as text and JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/report/table.hpp"
#include "cli/run/must_be_true.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

OrderedJson crossing_json(const Crossing& c) {
  OrderedJson json = {{"reached", c.reached}, {"factor", c.factor}, {"mfu", c.at.mfu}, {"step_time_s", c.at.step_time_s}};
  if (c.reached) json["every_larger"] = c.every_larger;
  else json["why"] = c.at.bound_reason;
  return json;
}

OrderedJson batch_json(const BatchAnswer& b) {
  OrderedJson json = {{"micro_batch", b.micro_batch}, {"next_missing_bytes", b.missing_bytes}};
  if (b.micro_batch == 0) return json;
  json["step_time_s"] = b.report.step_time_s;
  json["tokens_per_s_per_gpu"] = b.report.tokens_per_s_per_gpu;
  json["mfu"] = b.report.mfu;
  json["memory_headroom_bytes"] = b.report.memory_limit_bytes - b.report.peak_reserved_bytes;
  json["retries_per_step"] = b.report.retries_per_step.back();
  return json;
}

OrderedJson target_json(const Answers& a) {
  OrderedJson json = {{"mfu", a.asked.target_mfu}, {"mfu_now", a.mfu_now}, {"met", !a.target_batch}, {"changes", OrderedJson::array()}};
  for (const TargetAnswer& answer : a.target) {
    json["changes"].push_back({{"lever", answer.lever}});
    json["changes"].back().update(crossing_json(answer.crossing));
  }
  if (!a.target_batch) return json;
  const TargetBatchAnswer& b = *a.target_batch;
  json["micro_batch"] = {{"reached", b.micro_batch > 0}, {"tried_to", b.tried_to}, {"mfu", b.report.mfu}};
  if (b.micro_batch > 0) json["micro_batch"].update({{"micro_batch", b.micro_batch}, {"missing_bytes", b.missing_bytes}});
  return json;
}

/// "1.84 x, and at every larger factor tried", or why not.
std::string crossing_words(const Crossing& c, const std::string& left) {
  if (!c.reached) return fmt::format("no: {} at {:g} times ({})", left, c.factor, c.at.bound_reason);
  const std::string from = c.beyond ? fmt::format("already at {:.4g} times or less", c.factor) : fmt::format("from {:.3g} times on", c.factor);
  return fmt::format("{}: {}{}", from, left, c.every_larger ? "" : "; not at every larger factor, since kernels and transfers meet otherwise there");
}

std::string hidden_text(const Answers& a) {
  std::string text, asked;
  for (const HiddenAnswer& h : a.hidden) {
    if (h.what != asked)
      text += fmt::format("  Exposed {} below {} of the step (now {})\n", h.what, percent_text(a.asked.exposed_below), percent_text(h.share_now));
    asked = h.what;
    text += fmt::format("    {:<24} {}\n", h.lever, crossing_words(h.crossing, percent_text(h.share_then) + " exposed"));
  }
  return text;
}

std::string bytes_words(std::int64_t bytes) { return size_text(static_cast<double>(bytes)); }

std::string batch_text(const BatchAnswer& b) {
  if (b.micro_batch == 0) return fmt::format("  Largest micro-batch that fits: none; one sequence needs {} more than there is\n", bytes_words(b.missing_bytes));
  const Report& r = b.report;
  std::string text = fmt::format("  Largest micro-batch that fits: {} (MFU {}, {} tokens/s/GPU, {} left", b.micro_batch, percent_text(r.mfu),
                                 count_text(r.tokens_per_s_per_gpu), bytes_words(r.memory_limit_bytes - r.peak_reserved_bytes));
  if (r.retries_per_step.back() > 0) text += fmt::format(", {} retries of the allocator a step", r.retries_per_step.back());
  return text + (b.missing_bytes > 0 ? fmt::format("); {} would need {} more than there is\n", b.micro_batch + 1, bytes_words(b.missing_bytes))
                                     : "), as many as a scenario may have\n");
}

std::string target_batch_text(const TargetBatchAnswer& b) {
  if (b.tried_to == 0) return "";
  const std::string mfu = percent_text(b.report.mfu);
  if (b.micro_batch == 0) return fmt::format("no: MFU {} at best with up to {}\n", mfu, b.tried_to);
  const std::string memory = b.missing_bytes > 0 ? fmt::format(", with {} more memory than there is", bytes_words(b.missing_bytes)) : ", which fits";
  return fmt::format("{}: MFU {}{}\n", b.micro_batch, mfu, memory);
}

std::string target_text(const Answers& a) {
  if (a.asked.target_mfu <= 0 || !a.ran) return "";
  std::string text = fmt::format("  MFU of {} (now {})\n", percent_text(a.asked.target_mfu), percent_text(a.mfu_now));
  if (!a.target_batch) return text + "    is reached\n";
  for (const TargetAnswer& answer : a.target)
    text += fmt::format("    {:<24} {}\n", answer.lever, crossing_words(answer.crossing, "MFU " + percent_text(answer.crossing.at.mfu)));
  return text + fmt::format("    {:<24} {}", "micro-batch", target_batch_text(*a.target_batch));
}

}  // namespace

OrderedJson to_json(const Answers& a) {
  OrderedJson json = {{"exposed_below", a.asked.exposed_below}, {"hidden", OrderedJson::array()}, {"largest_micro_batch", batch_json(a.largest)}};
  for (const HiddenAnswer& h : a.hidden) {
    json["hidden"].push_back({{"communication", h.what}, {"lever", h.lever}, {"exposed_share_now", h.share_now}, {"exposed_share", h.share_then}});
    json["hidden"].back().update(crossing_json(h.crossing));
  }
  if (a.asked.target_mfu > 0 && a.ran) json["target"] = target_json(a);
  return json;
}

std::string to_text(const Answers& a) {
  const std::string none = a.ran ? "" : "  the scenario does not run: only what fits can be said\n";
  return "What must be true\n" + none + hidden_text(a) + batch_text(a.largest) + target_text(a);
}

}  // namespace stepcast::cli
