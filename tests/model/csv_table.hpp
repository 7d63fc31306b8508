// Reads a CSV table with quoted fields for tests that compare formulas with published measurements. Such tables lie beside the source tree and may be absent.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stepcast::test {

using Row = std::map<std::string, std::string>;

inline std::vector<std::string> split_csv(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    else if (c == ',' && !quoted) fields.emplace_back();
    else if (c != '\r') fields.back() += c;
  }
  return fields;
}

/// Rows of the table by column name, or nothing where the file is absent. `keep` selects rows.
template <class Keep>
std::optional<std::vector<Row>> read_table(const std::string& path, Keep keep) {
  std::ifstream in(path);
  std::string line;
  if (!in || !std::getline(in, line)) return std::nullopt;
  const std::vector<std::string> names = split_csv(line);
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> fields = split_csv(line);
    Row row;
    for (std::size_t i = 0; i < std::min(fields.size(), names.size()); ++i) row.emplace(names[i], fields[i]);
    if (fields.size() == names.size() && keep(row)) rows.push_back(std::move(row));
  }
  return rows;
}

inline double number(const Row& row, const std::string& column) { return std::strtod(row.at(column).c_str(), nullptr); }
inline std::int64_t count(const Row& row, const std::string& column) { return std::strtoll(row.at(column).c_str(), nullptr, 10); }

/// Half of all rows, chosen by a hash of what identifies them (FNV-1a, one bit): constants are fitted on the others and judged on these.
inline bool held_out(const Row& row, std::initializer_list<const char*> columns) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto mix = [&hash](char c) { hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U; };
  bool first = true;
  for (const char* column : columns) {
    if (!first) mix('|');
    first = false;
    for (const char c : row.at(column)) mix(c);
  }
  return ((hash >> 33U) & 1U) == 1;
}

/// Absolute relative errors of predictions, for medians and percentiles.
class Errors {
 public:
  void add(double predicted, double measured) { signed_.push_back(predicted / measured - 1); }
  [[nodiscard]] std::size_t size() const { return signed_.size(); }
  [[nodiscard]] double percentile(double share) const {
    std::vector<double> sorted;
    for (const double error : signed_) sorted.push_back(std::fabs(error));
    return pick(sorted, share);
  }
  [[nodiscard]] double largest() const { return percentile(1); }
  [[nodiscard]] double median() const { return percentile(0.5); }
  [[nodiscard]] double bias() const { return pick(signed_, 0.5); }  // median signed error

 private:
  static double pick(std::vector<double> values, double share) {
    if (values.empty()) return std::nan("");
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  }
  std::vector<double> signed_;
};

}  // namespace stepcast::test
