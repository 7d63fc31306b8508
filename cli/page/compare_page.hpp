// The page of a comparison: how far each gets, and from the first to each other one what made the step shorter or longer. docs/page.md; test: tests/unit/compare_page_test.cpp.
#pragma once

#include "cli/page/page.hpp"

namespace stepcast::cli {

/// `comparison`: as compare() makes it (report/compare.hpp).
Page compare_page(const nlohmann::ordered_json& comparison);

}  // namespace stepcast::cli
