// The diagnosis as JSON: the shape of docs/diagnose.md, "JSON". Test: tests/golden/diagnose_test.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "trace/profile/across_ranks.hpp"
#include "trace/profile/diagnosis.hpp"

namespace stepcast::cli {

nlohmann::ordered_json json_of(const trace::profile::RankDiagnosis& rank);
nlohmann::ordered_json json_of(const trace::profile::DeviceMetrics& device, const trace::profile::Profile& profile);
nlohmann::ordered_json json_of(const trace::profile::Gaps& gaps, const trace::profile::Profile& profile);
nlohmann::ordered_json json_of(const trace::profile::Rates& rates);
nlohmann::ordered_json json_of(const trace::profile::HostMetrics& host);
nlohmann::ordered_json json_of(const trace::profile::HtaMetrics& hta);
nlohmann::ordered_json json_of(const trace::profile::AcrossRanks& across);

}  // namespace stepcast::cli
