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

std::string bytes_words(std::int64_t bytes) { return size_text(static_cast<double>(bytes)); }

std::string batch_words(const BatchAnswer& b) {
  if (b.micro_batch == 0) return fmt::format("none; one sequence needs {} more than there is", bytes_words(b.missing_bytes));
  const Report& r = b.report;
  std::string text = fmt::format("{} (MFU {}, {} tokens/s/GPU, {} left", b.micro_batch, percent_text(r.mfu), count_text(r.tokens_per_s_per_gpu),
                                 bytes_words(r.memory_limit_bytes - r.peak_reserved_bytes));
  if (r.retries_per_step.back() > 0) text += fmt::format(", {} retries of the allocator a step", r.retries_per_step.back());
  return text + (b.missing_bytes > 0 ? fmt::format("); {} would need {} more than there is", b.micro_batch + 1, bytes_words(b.missing_bytes))
                                     : "), as many as a scenario may have");
}

std::string target_batch_words(const TargetBatchAnswer& b) {
  if (b.tried_to == 0) return "";
  const std::string mfu = percent_text(b.report.mfu);
  if (b.micro_batch == 0) return fmt::format("no: MFU {} at best with up to {}", mfu, b.tried_to);
  const std::string memory = b.missing_bytes > 0 ? fmt::format(", with {} more memory than there is", bytes_words(b.missing_bytes)) : ", which fits";
  return fmt::format("{}: MFU {}{}", b.micro_batch, mfu, memory);
}

void add_target(const Answers& a, std::vector<AnswerLine>& lines) {
  if (a.asked.target_mfu <= 0 || !a.ran) return;
  const std::string question = fmt::format("MFU of {} (now {})", percent_text(a.asked.target_mfu), percent_text(a.mfu_now));
  if (!a.target_batch) return lines.push_back({question, "", "is reached"});
  for (const TargetAnswer& answer : a.target)
    lines.push_back({question, answer.lever, crossing_words(answer.crossing, "MFU " + percent_text(answer.crossing.at.mfu))});
  lines.push_back({question, "micro-batch", target_batch_words(*a.target_batch)});
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

std::vector<AnswerLine> lines_of(const Answers& a) {
  std::vector<AnswerLine> lines;
  for (const HiddenAnswer& h : a.hidden)
    lines.push_back({fmt::format("Exposed {} below {} of the step (now {})", h.what, percent_text(a.asked.exposed_below), percent_text(h.share_now)), h.lever,
                     crossing_words(h.crossing, percent_text(h.share_then) + " exposed")});
  lines.push_back({"Largest micro-batch that fits", "", batch_words(a.largest)});
  add_target(a, lines);
  return lines;
}

std::string to_text(const Answers& a) {
  std::string text = "What must be true\n", asked;
  if (!a.ran) text += "  the scenario does not run: only what fits can be said\n";
  for (const AnswerLine& line : lines_of(a)) {
    if (line.change.empty()) text += fmt::format("  {}: {}\n", line.question, line.answer);
    else if (line.question != asked) text += fmt::format("  {}\n", line.question);
    if (!line.change.empty()) text += fmt::format("    {:<24} {}\n", line.change, line.answer);
    asked = line.question;
  }
  return text;
}

}  // namespace stepcast::cli
