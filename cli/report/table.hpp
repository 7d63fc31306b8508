// Aligned columns and bars of plain text. Test: tests/unit/report_test.cpp.
#pragma once

#include <string>
#include <vector>

namespace stepcast::cli {

/// Rows of cells; the first column is aligned left, the others right unless `left` names them.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::vector<std::size_t> left = {0}) : left_(std::move(left)) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// Lines with two spaces of indentation and no trailing blanks; the header only where any of its cells has text.
  [[nodiscard]] std::string render() const;

 private:
  std::vector<std::size_t> left_;
  std::vector<std::vector<std::string>> rows_;
};

/// A bar of `width` characters at ratio 1; at least one mark for anything above zero.
std::string bar(double ratio, std::size_t width = 40);

std::string time_text(double seconds);       // "812.1 ms": four significant digits
std::string size_text(double bytes);         // "45.23 GiB"
std::string bytes_text(std::int64_t bytes);  // the same of a count
std::string percent_text(double ratio);      // "44.3 %"
std::string percent_number(double ratio);    // "44.3", for a column whose head says %
std::string count_text(double value);        // "6,640": whole, with thousands separators
std::string flops_text(double flops);        // "1.23 PFLOP"
/// Text cut into lines of at most `width` characters, each with `indent` blanks before it.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width = 120);

}  // namespace stepcast::cli
