// Columns, bars and numbers of plain text. Test: tests/unit/report_test.cpp.
#include "cli/report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace stepcast::cli {
namespace {

std::size_t columns(const std::vector<std::vector<std::string>>& rows) {
  std::size_t n = 0;
  for (const auto& row : rows) n = std::max(n, row.size());
  return n;
}

/// Four significant digits.
std::string four(double value) {
  const double size = std::abs(value);
  const int decimals = size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3;
  return fmt::format("{:.{}f}", value, decimals);
}

struct Scale {
  double unit;
  const char* name;
};

template <std::size_t N>
std::string scaled(double value, const std::array<Scale, N>& scales) {
  for (const Scale& scale : scales) {
    if (std::abs(value) >= scale.unit * 0.99995) return four(value / scale.unit) + " " + scale.name;
  }
  const Scale& last = scales.back();
  return four(value / last.unit) + " " + last.name;
}

}  // namespace

std::string Table::render() const {
  std::vector<std::size_t> widths(columns(rows_), 0);
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const auto& row = rows_[r];
    if (r == 0 && std::all_of(row.begin(), row.end(), [](const std::string& cell) { return cell.empty(); })) continue;
    std::string line = "  ";
    for (std::size_t c = 0; c < row.size(); ++c) {
      const bool left = std::find(left_.begin(), left_.end(), c) != left_.end();
      line += left ? fmt::format("{:<{}}", row[c], widths[c]) : fmt::format("{:>{}}", row[c], widths[c]);
      if (c + 1 < row.size()) line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string bar(double ratio, std::size_t width) {
  if (!(ratio > 0)) return "";
  const double marks = std::round(std::min(ratio, 1.0) * static_cast<double>(width));
  return std::string(std::max<std::size_t>(1, static_cast<std::size_t>(marks)), '#');
}

std::string time_text(double seconds) {
  static constexpr std::array<Scale, 3> kScales{{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}}};
  return seconds == 0 ? "0" : scaled(seconds, kScales);
}

std::string size_text(double bytes) {
  static constexpr std::array<Scale, 4> kScales{{{1073741824.0, "GiB"}, {1048576.0, "MiB"}, {1024.0, "KiB"}, {1, "B"}}};
  return bytes == 0 ? "0" : scaled(bytes, kScales);
}

std::string bytes_text(std::int64_t bytes) { return size_text(static_cast<double>(bytes)); }

std::string percent_text(double ratio) { return fmt::format("{:.1f} %", 100 * ratio); }

std::string percent_number(double ratio) { return fmt::format("{:.1f}", 100 * ratio); }

std::string count_text(double value) {
  std::string digits = fmt::format("{:.0f}", std::abs(value));
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  if (std::llround(value) < 0) digits.insert(0, 1, '-');
  return digits;
}

std::string flops_text(double flops) {
  static constexpr std::array<Scale, 4> kScales{{{1e15, "PFLOP"}, {1e12, "TFLOP"}, {1e9, "GFLOP"}, {1, "FLOP"}}};
  return flops == 0 ? "0" : scaled(flops, kScales);
}

std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  const std::string blanks(indent, ' ');
  std::string result, line;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && indent + line.size() + 1 + word.size() > width) {
      result += blanks + line + "\n";
      line.clear();
    }
    if (!word.empty()) line += (line.empty() ? "" : " ") + word;
    at = end + 1;
  }
  return line.empty() ? result : result + blanks + line + "\n";
}

}  // namespace stepcast::cli
