// The page of a judgement: forecast against measurement, a point a row; errors by source, tier and GPU; the worst rows, and those without a forecast. docs/page.md; test:
// tests/unit/validate_page_test.cpp.
#pragma once

#include <string>

#include "cli/page/page.hpp"
#include "cli/validate/judge.hpp"

namespace stepcast::cli {

/// `table`: what the runs come from.
Page page_of(const Judgement& judgement, const std::string& table);

}  // namespace stepcast::cli
