// A row of a table of runs as a scenario: generic, by the columns; what a source's table does not say comes from its facts. docs/validate.md says how each column is read.
// Test: tests/unit/row_scenario_test.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/runs.hpp"
#include "calibration/source_facts.hpp"
#include "cli/validate/settings.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::cli {

/// A row that no scenario can say: what() is the reason.
class NotExpressible : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct RowScenario {
  nlohmann::json document;         // to be read like any scenario
  std::vector<std::string> notes;  // what was assumed for want of better
};

/// `run` is completed with the facts' cells. Throws NotExpressible.
RowScenario row_scenario(const calibration::Run& run, const calibration::SourceFacts& facts);
/// The same, read: what is forecast. `notes` are added to. Throws NotExpressible, InputError.
scenarios::Scenario scenario_of_row(const calibration::Run& run, const calibration::SourceFacts& facts, std::vector<std::string>& notes);

// Its parts; each puts settings of one or two sections.
using Notes = std::vector<std::string>;
void put_model(const calibration::Run& run, Settings& settings, Notes& notes);
void put_cluster(const calibration::Run& run, Settings& settings, Notes& notes);
void put_policy(const calibration::Run& run, Settings& settings, Notes& notes);
void put_batch(const calibration::Run& run, Settings& settings, Notes& notes);
void put_precision(const calibration::Run& run, Settings& settings);
void put_recompute(const calibration::Run& run, Settings& settings, Notes& notes);
void put_kernels(const calibration::Run& run, Settings& settings);

/// Network of a node in words: "4 x 100 Gb/s RoCE", "400 Gb/s per GPU", "3.2 Tb/s" (of the node).
struct NetworkWords {
  std::int64_t nics = 0;  // 0: not said
  double gbit = 0;        // of each adapter, or of the whole node where nics is 0
  bool per_gpu = false;
};
std::optional<NetworkWords> network_words(std::string_view text);

/// Text in lower case (ASCII), and whether it contains a word.
std::string lower(std::string_view text);
inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace stepcast::cli
