// Constants planted into a simulation come back from its trace: a profile with other constants is calibrated by it. docs/calibration.md, "Traces".
#include <doctest/doctest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "calibration/fit.hpp"
#include "calibration/predictor.hpp"
#include "calibration/trace_rows.hpp"
#include "cli/inputs.hpp"
#include "cli/predict.hpp"
#include "support/forecast.hpp"
#include "support/profile_json.hpp"
#include "trace/chrome_writer.hpp"
#include "trace/profile/import.hpp"

namespace calibration = stepcast::calibration;
namespace profile = stepcast::trace::profile;
using stepcast::scenarios::Scenario;

namespace {

struct Planted {
  const char* constant;
  double factor;
  bool alone;  // determined by itself; else only together with others
};
constexpr Planted kOfGpu[] = {{"efficiency_normalization", 0.85, true}, {"efficiency_indexing", 1.2, true},       {"efficiency_elementwise", 0.9, true},
                              {"efficiency_softmax", 0.8, true},        {"efficiency_optimizer", 0.9, true},      {"gemm_backward_ratio", 1.15, true},
                              {"gemm_efficiency", 0.85, false},         {"attention_flash2_rate_128", 0.8, false}};

using Rows = std::vector<calibration::Measurement>;

profile::Profile traced(const Scenario& scenario, const stepcast::cli::Hardware& hardware) {
  const auto program = stepcast::cli::program_of(scenario);
  const auto inputs = stepcast::cli::inputs_of(scenario, program, &hardware);
  auto result = stepcast::sim::simulate(program, inputs.prices, inputs.options);
  REQUIRE(result.outcome == stepcast::sim::Outcome::ok);
  result.trace.device_name = "a100-sxm4-80gb";
  std::stringstream file;
  stepcast::trace::write_chrome(result.trace, file);
  const std::string text = file.str();
  profile::MemorySource source(text);
  return profile::import_profile(source, "planted");
}

void add_rows(const char* sequence, const char* batch, const stepcast::cli::Hardware& hardware, const calibration::Machine& prior, Rows& rows) {
  const std::vector<std::string> sets = {"/model/layers=3", std::string("/batch/seq_len=") + sequence, std::string("/batch/micro_batch=") + batch};
  const Scenario scenario = stepcast::scenarios::read_scenario("7b-32xa100", sets);
  for (const calibration::Measurement& measured : calibration::trace_measurements(traced(scenario, hardware), "trace.json").rows) {
    const calibration::Measurement row = calibration::placed(measured, prior);
    if (calibration::obstacle(row, prior).empty()) rows.push_back(row);
  }
}

double typical_error(const calibration::Machine& machine, const Rows& rows) {
  std::vector<const calibration::Measurement*> all;
  for (const calibration::Measurement& row : rows) all.push_back(&row);
  return calibration::log_errors(machine, all).cwiseAbs().mean();
}

}  // namespace

TEST_CASE("calibrate: planted constants come back from traces, and steps that the fit has not seen are priced by them") {
  stepcast::cli::Hardware planted = stepcast::cli::hardware_of(stepcast::scenarios::read_scenario("7b-32xa100"));
  const calibration::Machine prior{planted.gpu, planted.cluster.node};
  for (const Planted& p : kOfGpu) planted.gpu.constants.at(p.constant).value *= p.factor;
  Rows rows, unseen;
  add_rows("1024", "4", planted, prior, rows);
  add_rows("4096", "2", planted, prior, rows);
  add_rows("2048", "2", planted, prior, unseen);
  REQUIRE(rows.size() > 30);
  calibration::FitOptions options;
  options.hold_out = 0;
  options.starts = 1;
  const calibration::Fit fit = calibration::fit(prior, rows, options);
  for (const Planted& p : kOfGpu) {
    const double found = fit.machine.gpu->at(p.constant) / planted.gpu.at(p.constant);
    const std::string name = p.constant;
    MESSAGE(name << " planted " << p.factor << ", found " << found * p.factor);
    if (p.alone) CHECK(std::fabs(std::log(found)) < 0.03);
  }
  MESSAGE("mean error of unseen rows " << typical_error(prior, unseen) << " before, " << typical_error(fit.machine, unseen) << " after");
  CHECK(typical_error(prior, unseen) > 0.05);
  CHECK(typical_error(fit.machine, unseen) < 0.02);
}

TEST_CASE("a collective that claims more bytes than there are is left out, not converted") {
  const auto rows_of = [](const char* elements) {
    const std::string text =
        stepcast::test::ProfileJson()
            .raw(R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather_RING_LL","pid":0,"tid":20,"ts":10,"dur":5,"args":{"device":0,)"
                 R"("stream":20,"Collective name":"_allgather_base","In msg nelems":100,"Out msg nelems":)" +
                 std::string(elements) + R"(,"Group size":8,"dtype":"BFloat16"}})")
            .text();
    profile::MemorySource source(text);
    return calibration::trace_measurements(profile::import_profile(source, "t"), "t").rows.size();
  };
  CHECK(rows_of("800") == 1);
  CHECK(rows_of("9223372036854775807") == 0);
}
