// See profile_json.hpp. Test: tests/model/profiles_test.cpp.
#include "hw_models/profile_json.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "hw_models/profile_rules.hpp"
#include "hw_models/shape_json.hpp"
#include "hw_models/strict_json.hpp"

namespace stepcast::hw {

namespace {

constexpr std::array kDescribes{EnumName<Describes>{Describes::gpu, "gpu"}, EnumName<Describes>{Describes::node, "node"},
                                EnumName<Describes>{Describes::part, "part"}};
constexpr std::array kOrigins{EnumName<Origin>{Origin::measured, "measured"}, EnumName<Origin>{Origin::datasheet, "datasheet"},
                              EnumName<Origin>{Origin::fitted, "fitted"}, EnumName<Origin>{Origin::assumed, "assumed"}};

std::span<const ConstantRule> rules_of(Describes describes) { return describes == Describes::gpu ? gpu_rules() : node_rules(); }

/// All keys of a constant; leaves `finish` to the caller.
Constant constant_in(Reader& reader, const ConstantRule& rule) {
  const Limits<double> limits{rule.min, rule.max};
  Constant constant;
  constant.value = rule.dimension ? reader.si("value", *rule.dimension, limits) : reader.number("value", limits);
  constant.origin = reader.enumeration("kind", kOrigins);
  constant.source = reader.text("source");
  if (double spread = 0; reader.maybe("spread", spread, {0, 10})) constant.spread = spread;
  return constant;
}

Constant read_constant(Reader reader, const ConstantRule& rule) {
  Constant constant = constant_in(reader, rule);
  reader.finish();
  return constant;
}

constexpr ConstantRule kMeasuredTime{"value", Dimension::time, 1e-12, 1e6, true};

/// One row of "measured": an operation by shape and its time as a constant.
void read_measured(Reader row, Describes describes, Profile& profile) {
  const Operation operation = row.enumeration("what", kOperations);
  const bool collective = operation == Operation::collective;
  if (collective != (describes == Describes::node)) row.fail("what", "belongs to the other kind of profile", "a GPU has kernels, a node collectives");
  const Dtype dtype = operation == Operation::copy ? Dtype::bf16 : row.enumeration("dtype", kDtypeNames);
  Reader shape = row.object("shape");
  if (collective) {
    profile.collectives.push_back({read_collective(dtype, shape), constant_in(row, kMeasuredTime)});
  } else {
    MeasuredKernel kernel{"", read_kernel(operation, dtype, shape), 1, {}};
    row.maybe("name", kernel.name);
    row.maybe("ranks", kernel.ranks, {1, 4096});
    kernel.time = constant_in(row, kMeasuredTime);
    profile.kernels.push_back(std::move(kernel));
  }
  shape.finish();
  row.finish();
}

void read_constants(Reader reader, Describes describes, Profile& profile) {
  for (const ConstantRule& rule : rules_of(describes)) {
    const std::string key(rule.name);
    if (reader.has(key)) profile.constants.insert_or_assign(key, read_constant(reader.object(key), rule));
  }
  reader.finish();
}

constexpr std::size_t kMaxParts = 8;  // each is parsed anew: keeps a hostile file cheap

void read_parts(Reader& reader, const PartText& part_text, Profile& profile) {
  const std::vector<std::string> names = reader.has("include") ? reader.texts("include") : std::vector<std::string>{};
  if (names.size() > kMaxParts) reader.fail("include", "too many parts", "at most " + std::to_string(kMaxParts));
  const PartText refuse = [&reader](const std::string& inner) -> std::string_view { reader.fail("include", "a part cannot include another (" + inner + ")"); };
  for (const std::string& name : names) {
    const ProfileFile part = parse_profile(part_text(name), name + ".json", refuse);
    if (part.describes != Describes::part) reader.fail("include", "\"" + name + "\" is not a part");
    for (const auto& [key, constant] : part.profile.constants) profile.constants.insert_or_assign(key, constant);
  }
}

/// All constants of another profile, as assumptions about this one; what the file says itself stands before them.
void read_model_profile(Reader& reader, Describes describes, const PartText& part_text, Profile& profile) {
  if (!reader.has("like")) return;
  const std::string name = reader.text("like");
  const ProfileFile other = parse_profile(part_text(name), name + ".json", part_text);
  if (other.describes != describes) reader.fail("like", "\"" + name + "\" describes something else");
  for (const auto& [key, constant] : other.profile.constants)
    profile.constants.insert_or_assign(key, Constant{constant.value, "as " + name + ": " + constant.source, Origin::assumed});
}

void check_complete(const Profile& profile, Describes describes, const std::string& file) {
  for (const ConstantRule& rule : rules_of(describes)) {
    if (rule.required && !profile.constants.contains(rule.name)) throw InputError(file, "/constants", "constant \"" + std::string(rule.name) + "\" is missing");
  }
}

}  // namespace

ProfileFile parse_profile(std::string_view text, const std::string& file, const PartText& part_text) {
  const Json json = parse_json(text, file);
  Reader reader(json, file);
  if (reader.text("schema") != kProfileSchema) reader.fail("schema", "unknown schema", std::string("this version reads ") + kProfileSchema);
  ProfileFile result;
  result.profile.name = reader.text("name");
  result.describes = reader.enumeration("describes", kDescribes);
  if (result.describes == Describes::node) result.profile.default_gpu = reader.text("gpu");
  read_model_profile(reader, result.describes, part_text, result.profile);
  read_parts(reader, part_text, result.profile);
  read_constants(reader.object("constants"), result.describes, result.profile);
  if (result.describes != Describes::part && reader.has("measured")) {
    for (Reader& row : reader.objects("measured")) read_measured(std::move(row), result.describes, result.profile);
  }
  reader.finish();
  if (result.describes != Describes::part) check_complete(result.profile, result.describes, file);
  return result;
}

}  // namespace stepcast::hw
