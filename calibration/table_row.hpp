// One row of a CSV table, its cells by column name and strictly read. Private to calibration. Test: tests/unit/measurement_tables_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "calibration/csv.hpp"

namespace stepcast::calibration {

/// Columns of a table by name, and which of them were asked for.
class TableColumns {
 public:
  TableColumns(const CsvTable& table, std::string file);
  [[nodiscard]] bool has(std::string_view name) const { return index_.contains(name); }
  [[nodiscard]] std::size_t at(std::string_view name) const { return index_.find(name)->second; }
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  std::map<std::string, std::size_t, std::less<>> index_;
  std::string file_;
};

class TableRow {
 public:
  TableRow(const TableColumns& columns, const CsvRow& row) : columns_(columns), row_(row) {}

  [[nodiscard]] std::size_t line() const { return row_.line; }
  /// The cell's text; "" where the table has no such column.
  [[nodiscard]] std::string text(std::string_view name) const;
  /// A whole number within the limits. Throws InputError.
  [[nodiscard]] std::int64_t count(std::string_view name, std::int64_t min, std::int64_t max) const;
  /// A positive, finite number. Throws InputError.
  [[nodiscard]] double positive(std::string_view name) const;
  [[noreturn]] void fail(std::string_view name, const std::string& what, const std::string& hint = "") const;

 private:
  const TableColumns& columns_;
  const CsvRow& row_;
};

}  // namespace stepcast::calibration
