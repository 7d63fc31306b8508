// See table_row.hpp.
#include "calibration/table_row.hpp"

#include <charconv>
#include <cmath>

#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::calibration {
namespace {

template <class T>
bool read_all(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

TableColumns::TableColumns(const CsvTable& table, std::string file) : file_(std::move(file)) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) index_.emplace(table.columns[c], c);
}

std::string TableRow::text(std::string_view name) const { return columns_.has(name) ? row_.cells[columns_.at(name)] : ""; }

std::int64_t TableRow::count(std::string_view name, std::int64_t min, std::int64_t max) const {
  const std::string cell = text(name);
  std::int64_t value = 0;
  if (!read_all(cell, value)) fail(name, "\"" + printable(cell, 40) + "\" is not a whole number");
  if (value < min || value > max) fail(name, printable(cell, 40) + " is out of range", "must be from " + std::to_string(min) + " to " + std::to_string(max));
  return value;
}

double TableRow::positive(std::string_view name) const {
  const std::string cell = text(name);
  double value = 0;
  if (!read_all(cell, value) || !std::isfinite(value)) fail(name, "\"" + printable(cell, 40) + "\" is not a number");
  if (value <= 0) fail(name, printable(cell, 40) + " is not more than 0");
  return value;
}

void TableRow::fail(std::string_view name, const std::string& what, const std::string& hint) const {
  throw InputError(columns_.file(), "line " + std::to_string(row_.line), "column " + printable(name, 40) + ": " + what, hint);
}

}  // namespace stepcast::calibration
