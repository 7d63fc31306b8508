// See csv.hpp.
#include "calibration/csv.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::calibration {
namespace {

/// One pass over the text, row by row.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] std::size_t line() const { return line_; }

  std::vector<std::string> row() {
    std::vector<std::string> cells;
    do cells.push_back(cell());
    while (take(','));
    if (!at_end() && !take_line_end()) fail("text after a closing quote", "double a quote that belongs to a cell");
    return cells;
  }

  [[noreturn]] void fail(const std::string& what, const std::string& hint) const { throw InputError(file_, "line " + std::to_string(line_), what, hint); }

 private:
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool take_line_end() {
    const bool carriage = at_ + 1 < text_.size() && text_[at_] == '\r' && text_[at_ + 1] == '\n';
    if (carriage) ++at_;
    if (!take('\n')) return false;
    ++line_;
    return true;
  }

  std::string cell() { return take('"') ? quoted() : plain(); }

  std::string plain() {
    const std::size_t begin = at_;
    while (!at_end() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r') check(text_[at_++], false);
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted() {
    std::string cell;
    const std::size_t opened = line_;
    while (!at_end()) {
      const char c = text_[at_++];
      if (c == '"' && !take('"')) return cell;
      check(c, true);
      if (c == '\n') ++line_;
      cell += c;
    }
    throw InputError(file_, "line " + std::to_string(opened), "a quote is never closed");
  }

  void check(char c, bool inside_quotes) const {
    const bool line_end = inside_quotes && (c == '\n' || c == '\r');
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && !line_end) fail("a control character", "the table must be plain text");
    if (c == '"' && !inside_quotes) fail("a quote inside a cell that does not begin with one", "put the cell in quotes and double the quote");
  }

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0, line_ = 1;
};

/// The JSON library checks UTF-8 when it writes a text.
bool is_utf8(std::string_view text) {
  try {
    static_cast<void>(nlohmann::json(text).dump());
    return true;
  } catch (const nlohmann::json::exception&) { return false; }
}

void check_columns(const std::vector<std::string>& columns, const std::string& file) {
  if (columns.size() > kMaxColumns) throw InputError(file, "line 1", "more than " + std::to_string(kMaxColumns) + " columns");
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::string place = "line 1, column " + std::to_string(c + 1);
    if (columns[c].empty()) throw InputError(file, place, "has no name");
    if (std::count(columns.begin(), columns.end(), columns[c]) > 1)
      throw InputError(file, place, "\"" + printable(columns[c]) + "\" stands twice in the header");
  }
}

}  // namespace

CsvTable parse_csv(std::string_view text, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // the byte order mark that spreadsheets write
  if (!is_utf8(text)) throw InputError(file, "", "is not UTF-8");
  CsvReader reader(text, file);
  CsvTable table;
  table.columns = reader.row();
  check_columns(table.columns, file);
  while (!reader.at_end()) {
    CsvRow row{reader.line(), reader.row()};
    if (row.cells.size() == 1 && row.cells[0].empty()) continue;
    if (row.cells.size() != table.columns.size()) {
      throw InputError(file, "line " + std::to_string(row.line),
                       std::to_string(row.cells.size()) + " cells where the header has " + std::to_string(table.columns.size()));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? "\"\"" : std::string(1, c);
  return cell + "\"";
}

}  // namespace stepcast::calibration
