// Any bytes as a table of runs, or with a brace first as the result of one: read_runs and parse_result accept or throw InputError in one line, and rows that are accepted can be turned into
// scenarios or refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "calibration/runs.hpp"
#include "cli/calibrate/results.hpp"
#include "cli/validate/row_scenario.hpp"
#include "hw_models/input_error.hpp"
#include "scenarios/scenario.hpp"

namespace {

using namespace stepcast;

void read_row(const calibration::Run& raw, const calibration::Sources& sources) {
  const calibration::SourceFacts facts = sources.of(raw);
  try {
    const auto said = cli::row_scenario(calibration::completed(raw, facts), facts);
    static_cast<void>(scenarios::read_scenario_text(said.document.dump(), "row"));
  } catch (const cli::NotExpressible&) {
  } catch (const InputError&) {}
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const calibration::Sources sources;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    if (text.starts_with('{')) return static_cast<void>(cli::parse_result(text, "fuzz.json", "a100-sxm4-80gb", "dgx-a100")), 0;
    const auto table = calibration::read_runs(text, "fuzz.csv");
    for (std::size_t i = 0; i < table.runs.size() && i < 100; ++i) read_row(table.runs[i], sources);
  } catch (const InputError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
