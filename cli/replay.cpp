// `stepcast replay`: recorded allocator histories under any allocator settings, and against the counters that were recorded. docs/commands.md; test: tests/cli.cmake.
#include "memory/replay.hpp"
#include "hw_models/ordered_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/report/table.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"
#include "memory/history.hpp"
#include "memory/sizes.hpp"
#include "scenarios/allocator_sets.hpp"

namespace stepcast::cli {
namespace {

constexpr const char* kSchema = "stepcast.replay/1";
constexpr std::size_t kFailuresShown = 5;

struct ReplayOptions {
  std::string file;
  std::vector<std::string> sets;
  bool check = false;
  OutputChoice output;
};

/// A history, what it was replayed with, and what came of it.
struct Replayed {
  memory::History history;
  memory::Settings settings;
  std::int64_t device_bytes = 0;
  bool limited = false;  // device_bytes is known, not just the largest that there is
  memory::Replay result;
  memory::Statistics at_peak;  // of reserved memory, when it was first reached
};

scenarios::Allocator section_of(const memory::History& history) {
  const memory::Settings& s = history.settings;
  return {s.max_split_size, s.expandable_segments, s.roundup_power2_divisions, s.garbage_collection_threshold, s.memory_fraction, history.device_bytes, {}};
}

memory::Settings settings_of(const scenarios::Allocator& a) {
  return {a.max_split_size, a.roundup_power2_divisions, a.memory_fraction, a.garbage_collection_threshold, a.expandable_segments};
}

Replayed replayed(memory::History history, const ReplayOptions& options) {
  Replayed r;
  const scenarios::Allocator allocator = scenarios::allocator_with(section_of(history), options.sets);
  r.settings = settings_of(allocator);
  memory::validate(r.settings, options.sets.empty() ? options.file : "--set");
  r.limited = allocator.device_memory.has_value();
  r.device_bytes = allocator.device_memory.value_or(memory::kMaxBytes);
  r.result = memory::replay(history, r.settings, r.device_bytes, printable(options.file, 400));
  const auto& after = r.result.after;
  r.at_peak = *std::max_element(after.begin(), after.end(), [](const auto& a, const auto& b) { return a.reserved < b.reserved; });
  r.history = std::move(history);
  return r;
}

/// Share of the reserved memory that nothing was handed out of, when most was reserved.
double fragmentation(const Replayed& r) {
  const auto reserved = static_cast<double>(r.at_peak.reserved);
  return reserved > 0 ? 1 - static_cast<double>(r.at_peak.allocated) / reserved : 0;
}

std::string count(std::int64_t n) { return count_text(static_cast<double>(n)); }

OrderedJson json_of(const memory::Statistics& statistics) {
  OrderedJson json = OrderedJson::object();
  for (const auto& counter : memory::kCounters) json[counter.name] = statistics.*counter.value;
  return json;
}

template <class T>
OrderedJson or_none(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson("none");
}

OrderedJson json_of(const Replayed& r) {
  OrderedJson failed = OrderedJson::array();
  for (const std::size_t op : r.result.oom) {
    const memory::ReplayOp& request = r.history.ops[op];
    failed.push_back({{"op", op}, {"bytes", request.size}, {"stream", request.stream}, {"counters", json_of(r.result.after[op])}});
  }
  return {{"id", r.history.id},
          {"operations", r.history.ops.size()},
          {"settings",
           {{"max_split_size", or_none(r.settings.max_split_size)},
            {"expandable_segments", r.settings.expandable_segments},
            {"roundup_power2_divisions", r.settings.roundup_power2_divisions},
            {"garbage_collection_threshold", r.settings.garbage_collection_threshold},
            {"memory_fraction", or_none(r.settings.memory_fraction)},
            {"device_memory", r.limited ? OrderedJson(r.device_bytes) : OrderedJson("none")}}},
          {"peak", json_of(r.result.peak)},
          {"at_peak_reserved", json_of(r.at_peak)},
          {"fragmentation", fragmentation(r)},
          {"end", json_of(r.result.after.back())},
          {"failed", failed},
          {"warnings", r.history.warnings}};
}

/// The first difference of all histories.
struct Check {
  std::size_t compared = 0;  // operations
  const Replayed* where = nullptr;
  memory::Difference difference;
};

Check check(const std::vector<Replayed>& all, const std::string& file) {
  Check found;
  for (const Replayed& r : all) {
    if (r.history.recorded.empty())
      throw InputError(printable(file, 400), r.history.pointer, "has nothing to check against: " + r.history.why_nothing_recorded);
    if (found.where) continue;
    found.compared += r.history.recorded.size();
    const auto difference = memory::first_difference(r.history, r.result);
    if (!difference) continue;
    found.where = &r;
    found.difference = *difference;
  }
  return found;
}

OrderedJson json_of(const Check& c) {
  OrderedJson json = {{"clean", c.where == nullptr}, {"compared", c.compared}};
  if (!c.where) return json;
  const memory::Difference& d = c.difference;
  json["difference"] = {{"history", c.where->history.id},
                        {"op", d.op},
                        {"place", c.where->history.pointer + "/" + std::to_string(d.place)},
                        {"call", text_of(c.where->history.ops[d.op])},
                        {"field", d.field},
                        {"expected", d.expected},
                        {"got", d.got}};
  return json;
}

std::string text_of_check(const Check& c, std::size_t histories) {
  if (!c.where) return fmt::format("clean: {} operations of {} histor{} give the recorded counters\n", c.compared, histories, histories == 1 ? "y" : "ies");
  const memory::Difference& d = c.difference;
  return fmt::format("{}: operation {} ({}; {}/{}): {}: expected {}, got {}\n", printable(c.where->history.id), d.op, text_of(c.where->history.ops[d.op]),
                     c.where->history.pointer, d.place, d.field, d.expected, d.got);
}

std::string table_of(const std::vector<Replayed>& all) {
  Table table({"", "operations", "allocated", "active", "reserved", "unused", "inactive split", "retries", "failed", "device mallocs", "frees"});
  const auto operations = [](const Replayed& r) { return static_cast<std::int64_t>(r.history.ops.size()); };
  std::int64_t total = 0;
  memory::Statistics sum;
  for (const Replayed& r : all) {
    const memory::Statistics& peak = r.result.peak;
    const memory::Statistics& end = r.result.after.back();
    table.add({printable(r.history.id, 40), count(operations(r)), bytes_text(peak.allocated), bytes_text(peak.active), bytes_text(peak.reserved),
               percent_text(fragmentation(r)), bytes_text(peak.inactive_split), count(end.retries), count(end.ooms), count(end.device_mallocs),
               count(end.device_frees)});
    total += operations(r);
    for (const auto field : {&memory::Statistics::retries, &memory::Statistics::ooms, &memory::Statistics::device_mallocs, &memory::Statistics::device_frees})
      sum.*field += end.*field;
  }
  if (all.size() > 1)
    table.add({"all", count(total), "", "", "", "", "", count(sum.retries), count(sum.ooms), count(sum.device_mallocs), count(sum.device_frees)});
  return "Peaks; unused: share of the reserved memory that was not handed out when most was reserved\n" + table.render();
}

std::string settings_text(const Replayed& r) {
  const memory::Settings& s = r.settings;
  std::string text = r.limited ? "pool of " + bytes_text(r.device_bytes) : std::string("no limit of memory (set /allocator/device_memory)");
  if (s.memory_fraction) text += fmt::format(", memory_fraction {:g}", *s.memory_fraction);
  if (s.max_split_size) text += ", max_split_size " + bytes_text(*s.max_split_size);
  if (s.roundup_power2_divisions > 1) text += fmt::format(", roundup_power2_divisions {}", s.roundup_power2_divisions);
  if (s.garbage_collection_threshold > 0) text += fmt::format(", garbage_collection_threshold {:g}", s.garbage_collection_threshold);
  if (s.expandable_segments) text += ", expandable segments";
  return text;
}

/// Settings, warnings and failed requests, where there are few histories.
std::string details(const Replayed& r) {
  std::string text = fmt::format("\n{}: {}\n", printable(r.history.id), settings_text(r));
  for (const std::string& warning : r.history.warnings) text += "  note: " + warning + "\n";
  for (std::size_t i = 0; i < std::min(kFailuresShown, r.result.oom.size()); ++i) {
    const std::size_t op = r.result.oom[i];
    const memory::Statistics& at = r.result.after[op];
    text += fmt::format("  out of memory at operation {} ({}): {} allocated, {} active, {} reserved\n", op, text_of(r.history.ops[op]),
                        bytes_text(at.allocated), bytes_text(at.active), bytes_text(at.reserved));
  }
  if (r.result.oom.size() > kFailuresShown) text += fmt::format("  and {} more\n", r.result.oom.size() - kFailuresShown);
  return text;
}

std::string text_of(const std::vector<Replayed>& all) {
  constexpr std::size_t kDetailed = 8;
  std::string text = table_of(all);
  for (const Replayed& r : all) {
    if (all.size() <= kDetailed) text += details(r);
  }
  return text;
}

Exit replay_command(const ReplayOptions& options) {
  const bool limit_given = scenarios::allocator_with({}, options.sets).device_memory.has_value();
  std::vector<Replayed> all;
  for (memory::History& history : memory::read_histories(options.file, limit_given)) all.push_back(replayed(std::move(history), options));
  std::optional<Check> checked;
  if (options.check) checked = check(all, options.file);
  if (options.output.json) {
    OrderedJson json = {{"schema", kSchema}, {"file", printable(options.file, 4000)}, {"histories", OrderedJson::array()}};
    for (const Replayed& r : all) json["histories"].push_back(json_of(r));
    if (checked) json["check"] = json_of(*checked);
    print(json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
  } else {
    print(checked ? text_of_check(*checked, all.size()) : text_of(all));
  }
  return checked && checked->where ? Exit::check_failed : Exit::ok;
}

}  // namespace

void add_replay(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = app.add_subcommand("replay", "Replay a recorded allocator history under any allocator settings");
  command->add_option("file", options->file, "PyTorch memory snapshot (pickle or JSON), or a file of allocator traces")->required()->type_name("FILE");
  command->add_option("--set", options->sets, "Change an allocator setting, e.g. --set /allocator/expandable_segments=true (may be repeated)")
      ->type_name("/POINTER=VALUE")
      ->allow_extra_args(false);
  command->add_flag("--check", options->check, "Compare with the recorded counters; exit 1 at the first difference");
  options->output.add_json(*command);
  command->footer(
      "Examples:\n  stepcast replay snapshot.pickle\n  stepcast replay snapshot.pickle --set '/allocator/device_memory=40 GiB'\n"
      "  stepcast replay snapshot.json --set /allocator/expandable_segments=true --json\n  stepcast replay traces.json --check");
  command->callback([options, &action] { action = [options] { return replay_command(*options); }; });
}

}  // namespace stepcast::cli
