// The page of a judgement: a point for each judged row, the rest with its reason, and the summary's figures. docs/page.md.
#include <doctest/doctest.h>

#include <algorithm>

#include "cli/page/validate_page.hpp"
#include "cli/report/validate.hpp"

using namespace stepcast;
using cli::JudgedRow;
using Json = nlohmann::ordered_json;

namespace {

/// Errors of 0, 10 and -20 %; the third does not fit, the fourth has no forecast.
cli::Judgement judgement() {
  std::vector<JudgedRow> rows(4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].id = "r" + std::to_string(i);
    rows[i].group = i < 2 ? "one" : "<two>";
    rows[i].tier = "A";
    rows[i].gpu = "a100-80gb";
    rows[i].model = "7B";
    rows[i].n_gpus = 32;
    if (i == 3) continue;
    rows[i].measured.tokens_per_s_per_gpu = 1000;
    rows[i].error = i == 0 ? 0 : i == 1 ? 0.1 : -0.2;
    rows[i].forecast.tokens_per_s_per_gpu = 1000 * (1 + *rows[i].error);
    rows[i].forecast.outcome = i == 2 ? "out_of_memory" : "ok";
  }
  rows[1].interval = cli::Percentiles{900, 1000, 1200};
  rows[1].measured.peak_memory_bytes = 100;
  rows[1].memory_error = -0.5;
  rows[3].skipped = "no shape, <b>";
  return cli::summarize(rows);
}

const Json& section_of(const Json& page, const std::string& title) {
  const auto found = std::find_if(page["sections"].begin(), page["sections"].end(), [&](const Json& section) { return section["title"] == title; });
  REQUIRE_MESSAGE(found != page["sections"].end(), title);
  return *found;
}

}  // namespace

TEST_CASE("a judgement's page: points, errors by group, the worst rows first, and the rows without a forecast") {
  const Json page = to_json(cli::page_of(judgement(), "runs.csv"));
  CHECK(page["command"] == "validate");
  CHECK(page["title"] == "runs.csv");
  CHECK(page["tiles"][0] == Json({{"label", "rows judged"}, {"value", "3"}, {"note", "1 without a forecast"}}));
  CHECK(page["tiles"][1]["value"] == "10.0 %");
  const Json& scatter = section_of(page, "Forecast against measurement");
  CHECK(scatter["filters"]["source"] == Json({"<two>", "one"}));
  REQUIRE(scatter["points"].size() == 3);
  CHECK(scatter["points"][1]["forecast"].get<double>() == doctest::Approx(1100));
  CHECK(scatter["points"][1]["high"] == 1200);
  CHECK_FALSE(scatter["points"][0].contains("high"));
  CHECK(scatter["points"][2]["fits"] == false);
  const Json& errors = section_of(page, "Errors of tokens/s/GPU");
  CHECK(errors["rows"].back()[0] == "all");
  CHECK(errors["rows"].back()[1] == "3");
  CHECK(section_of(page, "Worst rows")["rows"][0][0] == "r2");
  CHECK(section_of(page, "Worst rows")["rows"][0][5] == "-20.0 %");
  CHECK(section_of(page, "Peak memory")["points"][0]["forecast"] == 50);
  CHECK(section_of(page, "Rows without a forecast")["rows"] == Json::array({Json::array({"r3", "<two>", "no shape, <b>"})}));
}

TEST_CASE("a judgement of nothing is a page that says so") {
  const Json page = to_json(cli::page_of(cli::summarize({}), "runs.csv"));
  CHECK(page["sections"].empty());
  CHECK(page["notices"].size() == 1);
}
