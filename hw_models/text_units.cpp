// Units and their sizes, and the search for the shortest text of a value. Prefixes: SI (k, M, G, T, P) are powers of 1000, IEC (Ki, Mi, Gi, Ti) of 1024.
// A unit is kept as scale / divisor, both exact in binary, so that "8 us" is the double nearest to 8e-6. Test: tests/unit/text_units_test.cpp.
#include "hw_models/text_units.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>

#include "hw_models/text_file.hpp"

namespace stepcast {
namespace {

struct Unit {
  std::string_view name;
  double scale, divisor;
  [[nodiscard]] double to_si(double value) const { return value * scale / divisor; }
  [[nodiscard]] double from_si(double si) const { return si * divisor / scale; }
};

constexpr double kKi = 1024.0, kMi = kKi * kKi, kGi = kMi * kKi, kTi = kGi * kKi;
constexpr Unit kTimes[] = {{"ps", 1, 1e12}, {"ns", 1, 1e9}, {"us", 1, 1e6}, {"ms", 1, 1e3}, {"s", 1, 1}};
constexpr Unit kSizes[] = {{"B", 1, 1},     {"kB", 1e3, 1},  {"MB", 1e6, 1},  {"GB", 1e9, 1}, {"TB", 1e12, 1},
                           {"KiB", kKi, 1}, {"MiB", kMi, 1}, {"GiB", kGi, 1}, {"TiB", kTi, 1}};
constexpr Unit kRates[] = {{"B/s", 1, 1},     {"kB/s", 1e3, 1},  {"MB/s", 1e6, 1}, {"GB/s", 1e9, 1}, {"TB/s", 1e12, 1}, {"KiB/s", kKi, 1}, {"MiB/s", kMi, 1},
                           {"GiB/s", kGi, 1}, {"TiB/s", kTi, 1}, {"b/s", 1, 8},    {"kb/s", 1e3, 8}, {"Mb/s", 1e6, 8},  {"Gb/s", 1e9, 8},  {"Tb/s", 1e12, 8}};
constexpr Unit kFlops[] = {{"FLOP", 1, 1}, {"MFLOP", 1e6, 1}, {"GFLOP", 1e9, 1}, {"TFLOP", 1e12, 1}, {"PFLOP", 1e15, 1}};
constexpr Unit kFlopRates[] = {{"FLOP/s", 1, 1}, {"MFLOP/s", 1e6, 1}, {"GFLOP/s", 1e9, 1}, {"TFLOP/s", 1e12, 1}, {"PFLOP/s", 1e15, 1}};
constexpr Unit kFrequencies[] = {{"Hz", 1, 1}, {"kHz", 1e3, 1}, {"MHz", 1e6, 1}, {"GHz", 1e9, 1}};

std::span<const Unit> units_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::time: return kTimes;
    case Dimension::size: return kSizes;
    case Dimension::rate: return kRates;
    case Dimension::flops: return kFlops;
    case Dimension::flop_rate: return kFlopRates;
    case Dimension::frequency: return kFrequencies;
  }
  return {};
}

[[noreturn]] void refuse(std::string_view text, std::string_view why, Dimension dimension) {
  throw UnitError(fmt::format("\"{}\" {} (units: {})", printable(text, 40), why, unit_list(dimension)));
}

struct Parsed {
  double number = 0;
  const Unit* unit = nullptr;
};

Parsed parse(std::string_view text, Dimension dimension) {
  Parsed parsed;
  // from_chars would take "inf" and "nan".
  const bool numeric = !text.empty() && (text[0] == '-' || text[0] == '.' || (text[0] >= '0' && text[0] <= '9'));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed.number);
  if (!numeric || error == std::errc::invalid_argument) refuse(text, "does not begin with a number", dimension);
  if (error == std::errc::result_out_of_range || !std::isfinite(parsed.number)) refuse(text, "is out of range", dimension);
  std::string_view name = text.substr(static_cast<std::size_t>(end - text.data()));
  if (!name.empty() && name[0] == ' ') name.remove_prefix(1);
  if (name.empty()) refuse(text, "has no unit", dimension);
  for (const Unit& unit : units_of(dimension)) {
    if (unit.name == name) parsed.unit = &unit;
  }
  if (!parsed.unit) refuse(text, "has an unknown unit", dimension);
  return parsed;
}

/// Shortest decimal that gives exactly `si` in this unit; empty if 17 digits do not.
std::string exact_number(double si, const Unit& unit) {
  const double value = unit.from_si(si);
  const bool plain = value == 0 || (std::abs(value) >= 1e-3 && std::abs(value) < 1e6);
  for (int digits = 1; digits <= 17; ++digits) {
    std::string text = fmt::format("{:.{}g}", value, digits);
    if (plain && text.find('e') != std::string::npos) continue;
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    if (unit.to_si(back) == si) return text;
  }
  return "";
}

constexpr double kMaxBytes = 9007199254740992;  // 2^53: whole in a double

/// Lower is better: short, then with one to three digits before the point.
std::size_t clumsiness(const std::string& number, double value) { return 2 * number.size() + (std::abs(value) >= 1 && std::abs(value) < 1000 ? 0 : 3); }

}  // namespace

std::string unit_list(Dimension dimension) {
  std::string list;
  for (const Unit& unit : units_of(dimension)) list += (list.empty() ? "" : ", ") + std::string(unit.name);
  return list;
}

double parse_si(std::string_view text, Dimension dimension) {
  const Parsed parsed = parse(text, dimension);
  const double si = parsed.unit->to_si(parsed.number);
  if (!std::isfinite(si)) refuse(text, "is out of range", dimension);
  return si;
}

std::string si_text(double si, Dimension dimension, std::string_view unit) {
  std::string best;
  std::size_t best_score = ~std::size_t{0};
  for (const Unit& candidate : units_of(dimension)) {
    const std::string number = exact_number(si, candidate);
    if (number.empty()) continue;
    std::size_t score = clumsiness(number, candidate.from_si(si));
    if (si == 0) score = candidate.scale == candidate.divisor ? 1 : 2;
    if (candidate.name == unit) score = 0;
    if (score >= best_score) continue;
    best = number + " " + std::string(candidate.name);
    best_score = score;
  }
  return best;
}

std::int64_t parse_bytes(std::string_view text) {
  const Parsed parsed = parse(text, Dimension::size);
  const double bytes = parsed.unit->to_si(parsed.number);
  if (bytes < 0) refuse(text, "is negative", Dimension::size);
  if (bytes > kMaxBytes) refuse(text, "is out of range", Dimension::size);
  if (parsed.unit->scale == 1 && bytes != std::floor(bytes)) refuse(text, "is not a whole number of bytes", Dimension::size);
  return std::llround(bytes);
}

std::string bytes_text(std::int64_t bytes) {
  std::string best = fmt::format("{} B", bytes);
  std::int64_t count = bytes;
  for (const Unit& unit : kSizes) {
    const auto size = static_cast<std::int64_t>(unit.scale);
    if (bytes % size != 0 || bytes / size >= count) continue;
    count = bytes / size;
    best = fmt::format("{} {}", count, unit.name);
  }
  return best;
}

}  // namespace stepcast
