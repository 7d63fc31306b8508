// See live_scenario.hpp.
#include "cli/serve/live_scenario.hpp"

#include <algorithm>
#include <optional>

#include "hw_models/input_error.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

using scenarios::ScenarioTemplate;

bool leads(const Setting& setting) { return find_control(setting.pointer)->leads; }
bool yields(const Setting& setting) { return find_control(setting.pointer)->yields; }

/// Null takes a value of the base away, so that its default holds (RFC 7386).
Setting taken_away(const char* pointer) { return {pointer, nullptr}; }

std::vector<std::string> texts(const std::vector<Setting>& settings) {
  std::vector<std::string> all;
  all.reserve(settings.size());
  for (const Setting& setting : settings) all.push_back(set_text(setting.pointer, setting.value));
  return all;
}

/// Why the settings don't hold together, or nothing.
std::optional<std::string> refusal(const ScenarioTemplate& base, const std::vector<Setting>& settings) {
  try {
    (void)base.with(texts(settings));
    return std::nullopt;
  } catch (const InputError& error) { return error.what(); }
}

std::vector<Setting>::iterator place_of(std::vector<Setting>& settings, const std::string& pointer) {
  return std::find_if(settings.begin(), settings.end(), [&](const Setting& setting) { return setting.pointer == pointer; });
}

/// The last value of each pointer, in the order of the last time.
std::vector<Setting> latest(const std::vector<Setting>& settings) {
  std::vector<Setting> last;
  for (const Setting& setting : settings) {
    if (const auto found = place_of(last, setting.pointer); found != last.end()) last.erase(found);
    last.push_back(setting);
  }
  return last;
}

/// What leads and what never gives way, with everything else at its default.
std::vector<Setting> bare(const std::vector<Setting>& settings) {
  std::vector<Setting> state;
  std::copy_if(settings.begin(), settings.end(), std::back_inserter(state), [](const Setting& setting) { return leads(setting) || !yields(setting); });
  for (const Control& control : controls())
    if (control.yields && !control.leads && place_of(state, control.pointer) == state.end()) state.push_back(taken_away(control.pointer));
  return state;
}

/// Brings back, from the bare state on, what holds: settings from the newest to the oldest, then the base's own values.
std::vector<Setting> rebuilt(const ScenarioTemplate& base, const std::vector<Setting>& settings, std::vector<std::string>& taken_back) {
  std::vector<Setting> state = bare(settings);
  for (auto setting = settings.rbegin(); setting != settings.rend(); ++setting) {
    const auto place = place_of(state, setting->pointer);
    if (!place->value.is_null()) continue;
    place->value = setting->value;
    if (!refusal(base, state)) continue;
    place->value = nullptr;
    taken_back.push_back(setting->pointer);
  }
  const auto kept = state;
  for (const Setting& setting : kept) {
    if (!setting.value.is_null() || std::find(taken_back.begin(), taken_back.end(), setting.pointer) != taken_back.end()) continue;
    const auto place = place_of(state, setting.pointer);
    const auto at = place - state.begin();
    state.erase(place);
    if (!refusal(base, state)) continue;
    state.insert(state.begin() + at, setting);
    taken_back.push_back(setting.pointer);
  }
  return state;
}

const char* kind_name(ControlKind kind) { return kind == ControlKind::slider ? "slider" : kind == ControlKind::choice ? "choice" : "switch"; }

bool needed(const ControlNeed& need, const OrderedJson& resolved) {
  return !need.pointer || resolved.at(OrderedJson::json_pointer(need.pointer)) == need.value;
}

/// The control's values, and the scenario's own if that is another one: numbers in order.
std::vector<OrderedJson> options_of(const Control& control, const OrderedJson& base, const OrderedJson& now) {
  std::vector<OrderedJson> options;
  for (const nlohmann::json& option : control.options) options.push_back(option);
  for (const OrderedJson& value : {base, now}) {
    if (std::find(options.begin(), options.end(), value) != options.end()) continue;
    const auto after =
        std::find_if(options.begin(), options.end(), [&](const OrderedJson& option) { return option.is_number() && value.is_number() && option > value; });
    options.insert(after, value);
  }
  return options;
}

}  // namespace

LiveScenario::LiveScenario(ScenarioTemplate base) : base_(std::move(base)), resolved_(scenarios::to_json(base_.with({}))) {}

Settled LiveScenario::settle(const std::vector<Setting>& all) const {
  const std::vector<Setting> settings = latest(all);
  try {
    std::vector<std::string> sets = texts(settings);
    return {base_.with(sets), sets, {}};
  } catch (const InputError&) {
    if (std::none_of(settings.begin(), settings.end(), leads) || refusal(base_, bare(settings))) throw;
    Settled settled;
    settled.sets = texts(rebuilt(base_, settings, settled.taken_back));
    if (std::find(settled.taken_back.begin(), settled.taken_back.end(), settings.back().pointer) != settled.taken_back.end()) throw;
    settled.scenario = base_.with(settled.sets);
    return settled;
  }
}

OrderedJson LiveScenario::controls(const Settled& settled, const std::vector<Setting>& settings) const {
  const OrderedJson now = scenarios::to_json(settled.scenario);
  OrderedJson list = OrderedJson::array();
  for (const Control& control : cli::controls()) {
    const OrderedJson::json_pointer pointer(control.pointer);
    const OrderedJson &value = now.at(pointer), &base = resolved_.at(pointer);
    OrderedJson json = {{"pointer", control.pointer},      {"label", control.label}, {"group", control.group},
                        {"kind", kind_name(control.kind)}, {"value", value},         {"base", base}};
    for (const OrderedJson& option : options_of(control, base, value)) {
      OrderedJson entry = {{"value", option}};
      if (const auto why = option == value ? std::nullopt : why_not(control, option, now, settled, settings)) entry["refused"] = *why;
      json["options"].push_back(std::move(entry));
    }
    list.push_back(std::move(json));
  }
  return list;
}

/// Settings that were taken back are gone: an option is tried on what holds. A leading one may also take others back.
std::optional<std::string> LiveScenario::why_not(const Control& control, const OrderedJson& option, const OrderedJson& now, const Settled& settled,
                                                 const std::vector<Setting>& settings) const {
  if (!needed(control.need, now)) return control.need.reason;
  std::vector<std::string> sets = settled.sets;
  sets.push_back(set_text(control.pointer, option));
  try {
    (void)base_.with(sets);
    return std::nullopt;
  } catch (const InputError& error) {
    if (!control.leads) return error.what();
    std::vector<Setting> with = settings;
    with.push_back({control.pointer, option});
    return refusal(base_, bare(latest(with))) ? std::optional<std::string>(error.what()) : std::nullopt;
  }
}

}  // namespace stepcast::cli
