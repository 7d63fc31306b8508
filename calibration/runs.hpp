// Real runs as a table, one a row: what was trained, how, and what was measured. docs/validate.md lists the columns. Test: tests/unit/runs_test.cpp;
// fuzzed by tests/fuzz/runs.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::calibration {

/// Who gave a value: the row's source; whoever wrote the table, by deduction (its `inferred` column); or the facts about the source (source_facts.hpp).
enum class Given : std::uint8_t { stated, inferred, fact };

struct Cell {
  std::string text;
  double number = 0;  // of numeric columns
  Given given = Given::stated;
};

struct Run {
  std::string id;
  std::size_t line = 0;
  std::map<std::string, Cell, std::less<>> cells;  // by column; blank ones are absent
  std::vector<std::string> notes;                  // inferred values that could not be used

  [[nodiscard]] const Cell* find(std::string_view column) const;
  /// Text of a column, "" if blank.
  [[nodiscard]] std::string text(std::string_view column) const;
  [[nodiscard]] std::optional<double> number(std::string_view column) const;
  [[nodiscard]] std::optional<std::int64_t> count(std::string_view column) const;
};

struct RunTable {
  std::vector<Run> runs;
  std::vector<std::string> ignored;  // columns that are not known
};

/// Throws InputError: what parse_csv refuses, a missing column, a cell that is not what its column holds, an id that is blank or stands twice.
RunTable read_runs(std::string_view text, const std::string& file);
RunTable read_runs_file(const std::string& path);

/// The cell of a known column from its text. Throws std::invalid_argument with what the column wants.
Cell make_cell(std::string_view column, std::string_view text, Given given);
bool is_column(std::string_view name);

}  // namespace stepcast::calibration
