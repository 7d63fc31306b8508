// JSON that keeps the order in which fields were added: what is written. What is read is Json (strict_json.hpp); two names, so that neither is taken for the other.
#pragma once

#include <nlohmann/json.hpp>

namespace stepcast {

using OrderedJson = nlohmann::ordered_json;

}  // namespace stepcast
