// The page of a diagnosis: findings, where each device's time went, and of the first devices a step's timeline and the memory. docs/page.md; test: tests/unit/diagnose_page_test.cpp.
#pragma once

#include <utility>
#include <vector>

#include "cli/page/page.hpp"
#include "trace/profile/diagnosis.hpp"
#include "trace/profile/findings.hpp"

namespace stepcast::cli {

/// Filled rank by rank, since only one is in memory at a time.
class DiagnosePage {
 public:
  static constexpr std::size_t kDetailed = 4;  // devices with a timeline of their own

  void add(const trace::profile::RankDiagnosis& rank);
  [[nodiscard]] Page page(const std::vector<trace::profile::Finding>& findings) const;

 private:
  std::vector<Tile> tiles_;
  nlohmann::ordered_json breakdown_ = nlohmann::ordered_json::array();
  std::vector<nlohmann::ordered_json> details_;
  std::size_t devices_ = 0, ranks_ = 0;
  std::string title_;
  std::vector<std::pair<std::string, std::string>> labels_;  // of files: as findings have them, and their names without folders
};

/// The step of median length on a device, or the whole profile where it has no steps: threads that launched in it, streams, idle time by cause.
nlohmann::ordered_json step_section(const trace::profile::RankDiagnosis& rank, const trace::profile::DeviceMetrics& device, const std::string& where);

}  // namespace stepcast::cli
