// Tables as comma-separated text (RFC 4180): quoted cells may hold commas, quotes written twice, and line ends. Read strictly.
// Test: tests/unit/csv_test.cpp; fuzzed by tests/fuzz/runs.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::calibration {

inline constexpr std::size_t kMaxTableBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxColumns = 512;

struct CsvRow {
  std::size_t line = 0;  // of the file, where the row begins; the header is line 1
  std::vector<std::string> cells;
};

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;  // each with as many cells as there are columns
};

/// Blank lines between rows are skipped. Throws InputError with the line on a quote in the wrong place, a row of another length, a column named twice or not at all,
/// a control character, text that is not UTF-8, and a table without a header.
CsvTable parse_csv(std::string_view text, const std::string& file);

/// A cell as it stands in such a table: in quotes where it needs them.
std::string csv_cell(std::string_view text);

}  // namespace stepcast::calibration
