// The page of a diagnosis: findings, where each device's time went, and of the first devices a step's timeline and the memory. docs/page.md; test: tests/unit/diagnose_page_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/page/page.hpp"
#include "trace/profile/diagnosis.hpp"
#include "trace/profile/findings.hpp"
#include "trace/profile/rates.hpp"

namespace stepcast::cli {

struct Inferred;

/// Filled rank by rank, since only one is in memory at a time.
class DiagnosePage {
 public:
  static constexpr std::size_t kDetailed = 4;  // devices with a timeline of their own

  /// What is inferred from a rank, before that rank.
  void add(const Inferred& inferred);
  void add(const trace::profile::RankDiagnosis& rank);
  [[nodiscard]] Page page(const std::vector<trace::profile::Finding>& findings) const;

 private:
  std::vector<Tile> tiles_;
  nlohmann::ordered_json breakdown_ = nlohmann::ordered_json::array();
  std::vector<nlohmann::ordered_json> inferred_, details_;
  std::vector<Tile> inferred_tiles_;
  std::optional<double> peak_flops_;
  std::size_t devices_ = 0, ranks_ = 0;
  std::string title_;
  std::vector<std::pair<std::string, std::string>> labels_;  // of files: as findings have them, and their names without folders
};

/// The step of median length on a device, or the whole profile where it has no steps: threads that launched in it, streams, idle time by cause.
nlohmann::ordered_json step_section(const trace::profile::RankDiagnosis& rank, const trace::profile::DeviceMetrics& device, const std::string& where);

/// MFU and tokens/s of a training, and the predicted step beside the traced one.
std::vector<Tile> tiles_of(const Inferred& inferred);
/// The predicted step beside the traced one, where there is a prediction; the keys of the scenario with how sure each is.
std::vector<nlohmann::ordered_json> sections_of(const Inferred& inferred);
/// What the longest products and attentions reached; null: no shapes are recorded. `peak_flops`: of the device, where it is known.
nlohmann::ordered_json products_section(const trace::profile::Rates& rates, const std::optional<double>& peak_flops, const std::string& where);
/// What collectives reached; null: no sizes are recorded.
nlohmann::ordered_json bandwidth_section(const trace::profile::Rates& rates, const std::string& where);

}  // namespace stepcast::cli
