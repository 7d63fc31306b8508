// Comma-separated tables: quotes, line ends, and everything that is refused with its line. calibration/csv.hpp.
#include "calibration/csv.hpp"

#include <doctest/doctest.h>

#include "hw_models/input_error.hpp"
#include "support/text.hpp"

using namespace stepcast;
using calibration::CsvTable, calibration::csv_cell, calibration::parse_csv;

namespace {

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(parse_csv(text, "t.csv"));
  } catch (const InputError& error) { return error.what(); }
  return "accepted";
}

using stepcast::test::has;

}  // namespace

TEST_CASE("quoted cells hold commas, doubled quotes and line ends; rows know their line") {
  const CsvTable table = parse_csv("\xEF\xBB\xBFid,note\r\na,\"x, \"\"y\"\"\"\r\n\r\nb,\"two\nlines\"\nc,\n", "t.csv");
  CHECK(table.columns == std::vector<std::string>{"id", "note"});
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[0].cells[1] == "x, \"y\"");
  CHECK(table.rows[1].line == 4);
  CHECK(table.rows[1].cells[1] == "two\nlines");
  CHECK(table.rows[2].line == 6);
  CHECK(table.rows[2].cells[1].empty());
}

TEST_CASE("a cell written back reads the same") {
  for (const std::string cell : {"plain", "a,b", "say \"no\"", "two\nlines", ""}) {
    const CsvTable table = parse_csv("a,b\n" + csv_cell(cell) + ",1\n", "t.csv");
    REQUIRE(table.rows.size() == 1);
    CHECK(table.rows[0].cells[0] == cell);
  }
}

TEST_CASE("what is refused, with its line") {
  CHECK(has(refusal("a,b\n1\n"), "t.csv: line 2: 1 cells where the header has 2"));
  CHECK(has(refusal("a,b\n1,2,3\n"), "line 2: 3 cells"));
  CHECK(has(refusal("a,b\n1,\"2\n"), "line 2: a quote is never closed"));
  CHECK(has(refusal("a,b\n1,2\"\n"), "line 2: a quote inside a cell"));
  CHECK(has(refusal("a,b\n1,\"2\"x\n"), "line 2: text after a closing quote"));
  CHECK(has(refusal("a,a\n"), "line 1, column 1: \"a\" stands twice"));
  CHECK(has(refusal("a,\n"), "line 1, column 2: has no name"));
  CHECK(has(refusal(""), "has no name"));
  CHECK(has(refusal("a,b\n1,\x01\n"), "line 2: a control character"));
  CHECK(has(refusal("a,b\n1,\xff\n"), "not UTF-8"));
  CHECK(has(refusal(std::string(600, ',')), "more than 512 columns"));
}
