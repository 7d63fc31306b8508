// What calibrating on rows bought, of the same source and of others, as text and JSON. See validate.hpp.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "calibration/fit.hpp"
#include "cli/report/table.hpp"
#include "cli/report/validate.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

using calibration::ErrorSummary;

std::string sizes(const ErrorSummary& s) { return fmt::format("{:.1f} / {:.1f} / {:.1f}", 100 * s.median, 100 * s.mean, 100 * s.p90); }

std::string factor(const FittedFactor& f) {
  return f.variance_left > calibration::kUndetermined ? "-" : fmt::format("{:.3g} +-{:.0f} %", f.value, 100 * f.spread);
}

OrderedJson factors_json(const std::array<FittedFactor, 4>& fitted) {
  OrderedJson factors = OrderedJson::object();
  for (std::size_t p = 0; p < kFactorNames.size(); ++p) {
    const FittedFactor& f = fitted[p];
    factors[kFactorNames[p]] = {
        {"value", f.value}, {"spread", f.spread}, {"variance_left", f.variance_left}, {"determined", f.variance_left <= calibration::kUndetermined}};
  }
  return factors;
}

OrderedJson source_json(const SourceFit& fit) {
  return {{"fitted_rows", fit.fitted}, {"factors", factors_json(fit.factors)}, {"before", summary_json(fit.before)}, {"after", summary_json(fit.after)}};
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
  OrderedJson sources = OrderedJson::object();
  for (const SourceFit& fit : r.sources) sources[fit.source] = source_json(fit);
  return {{"before", summary_json(r.before)}, {"after", summary_json(r.after)}, {"by_source", sources}, {"too_few_rows", r.too_few}};
}

std::string to_text(const HoldOut& held) {
  Table table({"held out", "fitted", "judged", "as shipped", "fitted to the others", "clock", "network", "latency", "host"});
  for (const HeldOut& h : held.folds)
    table.add({h.fold.name, std::to_string(h.fold.fitted.size()), std::to_string(h.after.count), sizes(h.before), sizes(h.after), factor(h.factors[0]),
               factor(h.factors[1]), factor(h.factors[2]), factor(h.factors[3])});
  table.add({"all", "", std::to_string(held.after.count), sizes(held.before), sizes(held.after), "", "", "", ""});
  return table.render() +
         "  errors in %: median / mean / p90 of the rows held out; factors common to all machines, on their profiles' values, -: not determined\n";
}

nlohmann::ordered_json to_json(const HoldOut& held) {
  OrderedJson folds = OrderedJson::object();
  for (const HeldOut& h : held.folds)
    folds[h.fold.name] = {
        {"fitted", h.fold.fitted.size()}, {"factors", factors_json(h.factors)}, {"before", summary_json(h.before)}, {"after", summary_json(h.after)}};
  return {{"before", summary_json(held.before)}, {"after", summary_json(held.after)}, {"folds", folds}};
}

}  // namespace stepcast::cli
