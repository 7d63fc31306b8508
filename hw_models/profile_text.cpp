// See profile_text.hpp.
#include "hw_models/profile_text.hpp"

#include <nlohmann/json.hpp>

#include "hw_models/profile_rules.hpp"
#include "hw_models/shape_json.hpp"
#include "hw_models/text_units.hpp"

namespace stepcast::hw {

namespace {

using Ordered = nlohmann::ordered_json;

Ordered constant_json(const Constant& constant, const ConstantRule& rule) {
  Ordered json;
  if (rule.dimension) json["value"] = si_text(constant.value, *rule.dimension);
  else json["value"] = constant.value;
  json["kind"] = name(constant.origin);
  if (constant.spread) json["spread"] = *constant.spread;
  json["source"] = constant.source;
  return json;
}

/// Constants in the order of the rules: as people look for them.
Ordered constants_json(const Profile& profile, std::span<const ConstantRule> rules) {
  Ordered json = Ordered::object();
  for (const ConstantRule& rule : rules) {
    const auto found = profile.constants.find(rule.name);
    if (found != profile.constants.end()) json[std::string(rule.name)] = constant_json(found->second, rule);
  }
  return json;
}

Ordered with_time(Ordered row, const Constant& time) {
  row.update(constant_json(time, {"value", Dimension::time}));
  return row;
}

Ordered measured_json(const Profile& profile) {
  Ordered rows = Ordered::array();
  for (const MeasuredKernel& kernel : profile.kernels) {
    Ordered row = shape_row(kernel.shape);
    if (!kernel.name.empty()) row["name"] = kernel.name;
    row["ranks"] = kernel.ranks;
    rows.push_back(with_time(std::move(row), kernel.time));
  }
  for (const MeasuredCollective& collective : profile.collectives) rows.push_back(with_time(shape_row(collective.shape), collective.time));
  return rows;
}

Ordered with_tables(Ordered json, const Profile& profile) {
  if (!profile.kernels.empty() || !profile.collectives.empty()) json["measured"] = measured_json(profile);
  return json;
}

std::string text(const Ordered& json) { return json.dump(2, ' ', false, Ordered::error_handler_t::replace) + "\n"; }

}  // namespace

std::string gpu_profile_text(const Profile& profile) {
  return text(
      with_tables({{"schema", kProfileSchema}, {"name", profile.name}, {"describes", "gpu"}, {"constants", constants_json(profile, gpu_rules())}}, profile));
}

std::string node_profile_text(const Profile& profile) {
  return text(with_tables({{"schema", kProfileSchema},
                           {"name", profile.name},
                           {"describes", "node"},
                           {"gpu", profile.default_gpu},
                           {"constants", constants_json(profile, node_rules())}},
                          profile));
}

}  // namespace stepcast::hw
