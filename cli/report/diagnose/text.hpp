// The diagnosis as text. docs/diagnose.md; test: tests/golden/diagnose_test.cpp.
#pragma once

#include <string>

#include "trace/profile/across_ranks.hpp"
#include "trace/profile/diagnosis.hpp"

namespace stepcast::cli {

std::string text_of(const trace::profile::RankDiagnosis& rank);
std::string text_of(const trace::profile::AcrossRanks& across);

}  // namespace stepcast::cli
