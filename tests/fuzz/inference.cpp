// Any bytes as a profile: the scenario behind it, its MFU and the measurements in it are made without a crash, or an InputError of one line says why not.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "calibration/trace_rows.hpp"
#include "cli/diagnose/trace_scenario.hpp"
#include "hw_models/input_error.hpp"
#include "trace/profile/import.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepcast;
  namespace profile = trace::profile;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto source = profile::inflated_if_gzip(std::make_unique<profile::MemorySource>(bytes));
    const profile::RankDiagnosis rank = profile::diagnose(profile::import_profile(*source, "fuzz"));
    for (const calibration::Measurement& row : calibration::trace_measurements(rank.profile, "fuzz").rows) {
      if (!(row.time.si() > 0) || !std::isfinite(row.time.si())) std::abort();
    }
    const auto inferred = cli::scenario_of(rank, {}, {});
    if (!inferred) return 0;
    if (inferred->scenario.has_value() == !inferred->problem.empty()) std::abort();
    if (inferred->problem.find('\n') != std::string_view::npos) std::abort();
    if (inferred->scenario) cli::utilisation_of(rank, *inferred->scenario);
  } catch (const InputError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
