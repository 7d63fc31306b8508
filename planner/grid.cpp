// See grid.hpp.
#include "planner/grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::planner {
namespace {

[[noreturn]] void refuse(const std::string& pointer, const std::string& what, const std::string& hint = "") {
  throw InputError("--vary", printable(pointer), what, hint);
}

/// Takes a number off the front of `text`.
std::optional<double> take_number(std::string_view& text) {
  double value = 0;
  // ".." ends a number: from_chars would take the first of the dots.
  const std::string_view head = text.substr(0, text.find(".."));
  const auto [end, error] = std::from_chars(head.data(), head.data() + head.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - head.data()));
  return value;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

struct Steps {
  double first = 0, last = 0, by = 1;
  bool times = false;
  std::string unit;  // behind each value, with its blank
};

/// FIRST..LAST[:[*]BY][ UNIT]; nothing else is a range, so that texts with dots stay texts.
std::optional<Steps> steps_of(std::string_view text) {
  Steps range;
  const auto first = take_number(text);
  if (!first || !take(text, "..")) return std::nullopt;
  const auto last = take_number(text);
  if (!last) return std::nullopt;
  range.first = *first;
  range.last = *last;
  if (take(text, ":")) {
    range.times = take(text, "*");
    const auto by = take_number(text);
    if (!by) return std::nullopt;
    range.by = *by;
  }
  if (!text.empty() && text.front() != ' ') return std::nullopt;
  range.unit = text;
  return range;
}

void expand(const Steps& range, const std::string& pointer, std::vector<std::string>& values) {
  if (range.last < range.first) refuse(pointer, "the range ends before it begins");
  if (range.times ? range.by <= 1 || range.first <= 0 : range.by <= 0)
    refuse(pointer, "the range never ends", range.times ? "a factor above 1, from above 0" : "a step above 0");
  const double slack = 1e-9 * std::max(std::abs(range.last), range.by);  // decimal steps add up to their end only nearly
  for (std::size_t i = 0;; ++i) {
    const double n = static_cast<double>(i), value = range.times ? range.first * std::pow(range.by, n) : range.first + n * range.by;
    if (value > range.last + slack) return;
    if (i == kMaxPoints) refuse(pointer, fmt::format("the range has more than {} values", kMaxPoints));
    const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
    values.push_back((whole ? fmt::format("{:.0f}", value) : fmt::format("{:.12g}", value)) + range.unit);
  }
}

/// Parts between commas that stand outside quotes and brackets.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    else if (c == '"') quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{')) ++depth;
    else if (!quoted && (c == ']' || c == '}')) --depth;
    else if (!quoted && depth == 0 && c == ',') {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

}  // namespace

std::vector<std::string> parse_values(std::string_view text, const std::string& pointer) {
  std::vector<std::string> values;
  for (const std::string_view part : split(text)) {
    if (part.empty()) refuse(pointer, "has an empty value", "values stand between commas");
    if (const auto range = steps_of(part)) expand(*range, pointer, values);
    else values.emplace_back(part);
  }
  return values;
}

Axis parse_axis(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (text.empty() || text[0] != '/' || equals == std::string_view::npos)
    throw InputError("--vary", "", "\"" + printable(text) + "\" is not of the form /json/pointer=values", "for example /batch/micro_batch=1,2,4");
  const std::string pointer(text.substr(0, equals));
  return {pointer, parse_values(text.substr(equals + 1), pointer)};
}

Grid::Grid(std::vector<Axis> axes) : axes_(std::move(axes)) {
  if (axes_.empty()) throw InputError("command line", "", "nothing is varied", "give --vary /json/pointer=values");
  std::set<std::string> pointers;
  for (const Axis& axis : axes_) {
    if (!pointers.insert(axis.pointer).second) refuse(axis.pointer, "is varied twice");
    if (axis.values.empty()) refuse(axis.pointer, "has no values");
    const std::set<std::string> values(axis.values.begin(), axis.values.end());
    if (values.size() != axis.values.size()) refuse(axis.pointer, "has a value twice");
    if (axis.values.size() > kMaxPoints / size_) throw InputError("--vary", "", fmt::format("the grid has more than {} points", kMaxPoints));
    size_ *= axis.values.size();
  }
}

std::vector<std::size_t> Grid::indices(std::size_t i) const {
  std::vector<std::size_t> indices(axes_.size());
  for (std::size_t axis = axes_.size(); axis-- > 0;) {
    indices[axis] = i % axes_[axis].values.size();
    i /= axes_[axis].values.size();
  }
  return indices;
}

std::vector<std::string> Grid::sets(std::size_t i) const {
  std::vector<std::string> sets;
  const std::vector<std::size_t> which = indices(i);
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) sets.push_back(axes_[axis].pointer + "=" + axes_[axis].values[which[axis]]);
  return sets;
}

}  // namespace stepcast::planner
