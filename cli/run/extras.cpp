// See extras.hpp.
#include "cli/run/extras.hpp"

#include <nlohmann/json.hpp>

namespace stepcast::cli {

std::string to_text(const Extras& extras) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += "\n" + part; };
  if (extras.explanation) add(to_text(*extras.explanation));
  if (extras.cost) add(to_text(*extras.cost));
  if (extras.roofline) add(to_text(*extras.roofline));
  if (!extras.scaling.empty()) add(to_text(extras.scaling));
  if (extras.answers) add(to_text(*extras.answers));
  return text;
}

void add_to(nlohmann::ordered_json& report, const Extras& extras) {
  if (extras.explanation) report["explain"] = to_json(*extras.explanation);
  if (extras.cost) report["cost"] = to_json(*extras.cost);
  if (extras.roofline) report["roofline"] = to_json(*extras.roofline);
  if (!extras.scaling.empty()) report["scaling"] = to_json(extras.scaling);
  if (extras.answers) report["what_must_be_true"] = to_json(*extras.answers);
}

}  // namespace stepcast::cli
