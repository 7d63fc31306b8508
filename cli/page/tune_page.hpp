// The page of a search for settings. docs/page.md; test: tests/unit/sweep_page_test.cpp.
#pragma once

#include "cli/page/page.hpp"
#include "cli/report/tune.hpp"

namespace stepcast::cli {

Page tune_page(const TuneResult& result);

}  // namespace stepcast::cli
