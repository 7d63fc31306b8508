// Strict reader of hardware profiles (data/*.json): every constant as {value with unit, kind, source}. Private to hw_models; use profiles.hpp.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "hw_models/hardware.hpp"

namespace stepcast::hw {

enum class Describes : std::uint8_t { gpu, node, part };

struct ProfileFile {
  Profile profile;
  Describes describes = Describes::part;
};

/// Text of a profile or part by name, for "include" and "like"; throws InputError.
using PartText = std::function<std::string_view(const std::string& name)>;

/// Reads one file, the profile that it is "like" (whose constants count as assumed) and the parts that it includes; its own constants stand before theirs. A GPU or node profile that lacks a required constant is an error.
ProfileFile parse_profile(std::string_view text, const std::string& file, const PartText& part_text);

}  // namespace stepcast::hw
