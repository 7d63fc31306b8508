// What calibrating on rows bought, as text and JSON. See validate.hpp.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "calibration/fit.hpp"
#include "cli/report/table.hpp"
#include "cli/report/validate.hpp"

namespace stepcast::cli {
namespace {

using Json = nlohmann::ordered_json;
using calibration::ErrorSummary;

std::string sizes(const ErrorSummary& s) { return fmt::format("{:.1f} / {:.1f} / {:.1f}", 100 * s.median, 100 * s.mean, 100 * s.p90); }

std::string factor(const FittedFactor& f) {
  return f.variance_left > calibration::kUndetermined ? "-" : fmt::format("{:.3g} +-{:.0f} %", f.value, 100 * f.spread);
}

Json summary_json(const ErrorSummary& s) {
  return {{"count", s.count}, {"median", s.median}, {"mean", s.mean}, {"p90", s.p90}, {"max", s.max}, {"bias", s.bias}};
}

Json source_json(const SourceFit& fit) {
  Json factors = Json::object();
  for (std::size_t p = 0; p < kFactorNames.size(); ++p) {
    const FittedFactor& f = fit.factors[p];
    factors[kFactorNames[p]] = {
        {"value", f.value}, {"spread", f.spread}, {"variance_left", f.variance_left}, {"determined", f.variance_left <= calibration::kUndetermined}};
  }
  return {{"fitted_rows", fit.fitted}, {"factors", factors}, {"before", summary_json(fit.before)}, {"after", summary_json(fit.after)}};
}

}  // namespace

std::string to_text(const Recalibration& r) {
  Table table({"calibrated on own rows", "fitted", "judged", "as shipped", "calibrated", "clock", "network", "latency", "host"});
  for (const SourceFit& fit : r.sources)
    table.add({fit.source, std::to_string(fit.fitted.size()), std::to_string(fit.after.count), sizes(fit.before), sizes(fit.after), factor(fit.factors[0]),
               factor(fit.factors[1]), factor(fit.factors[2]), factor(fit.factors[3])});
  table.add({"all", "", std::to_string(r.after.count), sizes(r.before), sizes(r.after), "", "", "", ""});
  std::string text = table.render() +
                     "  errors in %: median / mean / p90 of the rows that were not fitted; factors on the profile's values, -: not determined by these rows\n";
  std::string few;
  for (const std::string& source : r.too_few) few += (few.empty() ? "" : ", ") + source;
  return few.empty() ? text : text + "  too few rows: " + few + "\n";
}

nlohmann::ordered_json to_json(const Recalibration& r) {
  Json sources = Json::object();
  for (const SourceFit& fit : r.sources) sources[fit.source] = source_json(fit);
  return {{"before", summary_json(r.before)}, {"after", summary_json(r.after)}, {"by_source", sources}, {"too_few_rows", r.too_few}};
}

}  // namespace stepcast::cli
