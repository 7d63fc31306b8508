// See source_facts.hpp. The format of the data file: docs/validate.md, "Facts".
#include "calibration/source_facts.hpp"

#include <algorithm>
#include <stdexcept>

#include "hw_models/embedded.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/strict_json.hpp"

namespace stepcast {
std::span<const EmbeddedFile> source_files();  // calibration/data
}

namespace stepcast::calibration {
namespace {

constexpr const char* kSchema = "stepcast.sources/1";
constexpr EnumName<FactKind> kKinds[] = {{FactKind::stated, "stated"}, {FactKind::inferred, "inferred"}, {FactKind::assumed, "assumed"}};
constexpr EnumName<MemoryQuantity> kQuantities[] = {
    {MemoryQuantity::allocated, "allocated"}, {MemoryQuantity::active, "active"}, {MemoryQuantity::reserved, "reserved"}, {MemoryQuantity::device, "device"}};
using Parameters = MfuConvention::Parameters;
constexpr EnumName<Parameters> kParameters[] = {{Parameters::stated, "stated"},
                                                {Parameters::matmul, "matmul"},
                                                {Parameters::blocks, "blocks"},
                                                {Parameters::without_embedding, "without_embedding"},
                                                {Parameters::nominal, "nominal"}};

/// Where a part of the file stands, for messages.
struct Place {
  const std::string& file;
  std::string pointer;
  [[noreturn]] void fail(const std::string& what) const { throw InputError(file, pointer, what); }
};

Condition read_condition(const nlohmann::json& json, const Place& place) {
  if (!json.is_object() || json.empty()) place.fail("\"when\" must name at least one column");
  Condition condition;
  for (const auto& [column, texts] : json.items()) {
    if (!is_column(column)) place.fail("\"" + column + "\" is no column");
    condition.columns.emplace_back(column, std::vector<std::string>{});
    for (const auto& text : texts.is_array() ? texts : nlohmann::json::array({texts})) {
      if (!text.is_string() || text.get_ref<const std::string&>().empty()) place.fail("the texts of a condition must not be empty");
      condition.columns.back().second.push_back(text);
    }
  }
  return condition;
}

Fact read_fact(const nlohmann::json& json, const Place& place, bool needs_when) {
  Reader reader(json, place.file, place.pointer);
  Fact fact;
  if (reader.has("when")) {
    reader.ignore("when");
    fact.when = read_condition(json.at("when"), place);
  } else if (needs_when) {
    reader.fail("when", "is missing");
  }
  reader.object("set");
  for (const auto& [key, value] : json.at("set").items()) {
    if (key.starts_with('/')) {
      fact.settings.emplace_back(key, value);
      continue;
    }
    try {
      fact.cells.emplace_back(key, make_cell(key, value.is_string() ? value.get<std::string>() : value.dump(), Given::fact));
    } catch (const std::invalid_argument& error) { place.fail("\"" + key + "\" " + error.what()); }
  }
  fact.source = reader.text("source");
  fact.kind = reader.enumeration("kind", kKinds);
  reader.finish();
  return fact;
}

std::vector<Fact> read_facts(const nlohmann::json& json, const Place& place, bool need_when) {
  if (!json.is_array()) place.fail("must be a list of facts");
  std::vector<Fact> facts;
  for (std::size_t i = 0; i < json.size(); ++i) facts.push_back(read_fact(json[i], {place.file, place.pointer + "/" + std::to_string(i)}, need_when));
  return facts;
}

MfuConvention read_mfu(Reader reader) {
  MfuConvention mfu;
  mfu.parameters = reader.enumeration("parameters", kParameters);
  if (mfu.parameters == Parameters::nominal) mfu.nominal = reader.number("count", kPositive);
  mfu.attention_share = reader.number("attention", {0, 1});
  reader.maybe("peak", mfu.peak, kPositive);
  static_cast<void>(reader.text("source"));
  reader.finish();
  return mfu;
}

}  // namespace

bool Condition::holds(const Run& run) const {
  return std::all_of(columns.begin(), columns.end(), [&](const auto& column) {
    const std::string cell = run.text(column.first);
    return std::any_of(column.second.begin(), column.second.end(),
                       [&](const std::string& text) { return column.first == "id" ? cell.starts_with(text) : cell.find(text) != std::string::npos; });
  });
}

const char* name(FactKind kind) { return spelled(kKinds, kind); }

Sources::Sources() { read(source_files().front().text, std::string(source_files().front().name)); }
Sources::Sources(std::string_view text, const std::string& file) { read(text, file); }

void Sources::read(std::string_view text, const std::string& file) {
  const nlohmann::json json = parse_json(text, file);
  Reader reader(json, file);
  if (reader.text("schema") != kSchema) reader.fail("schema", std::string("this program reads \"") + kSchema + "\"");
  for (const char* key : {"facts", "sources"}) {
    if (!reader.has(key)) reader.fail(key, "is missing");
    reader.ignore(key);
  }
  reader.finish();
  common_ = read_facts(json.at("facts"), {file, "/facts"}, true);
  if (!json.at("sources").is_array()) throw InputError(file, "/sources", "must be a list of sources");
  for (std::size_t i = 0; i < json.at("sources").size(); ++i) sources_.push_back(read_source(json.at("sources")[i], file, "/sources/" + std::to_string(i)));
}

Sources::Source Sources::read_source(const nlohmann::json& json, const std::string& file, const std::string& pointer) {
  Reader reader(json, file, pointer);
  Source source;
  source.name = reader.text("name");
  for (const char* key : {"when", "facts"}) {
    if (!reader.has(key)) reader.fail(key, "is missing");
    reader.ignore(key);
  }
  source.when = read_condition(json.at("when"), {file, pointer + "/when"});
  source.facts = read_facts(json.at("facts"), {file, pointer + "/facts"}, false);
  if (auto mfu = reader.maybe_object("mfu")) source.mfu = read_mfu(std::move(*mfu));
  if (auto memory = reader.maybe_object("memory")) {
    source.memory = memory->enumeration("quantity", kQuantities);
    static_cast<void>(memory->text("source"));
    memory->finish();
  }
  reader.finish();
  return source;
}

SourceFacts Sources::of(const Run& run) const {
  SourceFacts found;
  found.name = run.text("source");
  const auto add = [&](const std::vector<Fact>& facts) {
    for (const Fact& fact : facts) {
      if (fact.when.holds(run)) found.facts.push_back(&fact);
    }
  };
  add(common_);
  for (const Source& source : sources_) {
    if (!source.when.holds(run)) continue;
    found.name = source.name;
    found.known = true;
    add(source.facts);
    found.mfu = source.mfu;
    found.memory = source.memory;
    break;
  }
  return found;
}

std::vector<std::string> Sources::names() const {
  std::vector<std::string> names;
  for (const Source& source : sources_) names.push_back(source.name);
  return names;
}

std::vector<const Fact*> Sources::all() const {
  std::vector<const Fact*> facts;
  for (const Fact& fact : common_) facts.push_back(&fact);
  for (const Source& source : sources_) {
    for (const Fact& fact : source.facts) facts.push_back(&fact);
  }
  return facts;
}

Run completed(Run run, const SourceFacts& facts) {
  for (auto fact = facts.facts.rbegin(); fact != facts.facts.rend(); ++fact) {  // the last one overrides
    for (const auto& [column, cell] : (*fact)->cells) run.cells.emplace(column, cell);
  }
  return run;
}

}  // namespace stepcast::calibration
