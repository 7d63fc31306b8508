// Profiles as data, see hardware.hpp. Reading and checking: profile_json.cpp.
#include "hw_models/hardware.hpp"

#include <stdexcept>

namespace stepcast::hw {

const char* name(Origin origin) {
  switch (origin) {
    case Origin::measured: return "measured";
    case Origin::datasheet: return "datasheet";
    case Origin::fitted: return "fitted";
    case Origin::assumed: return "assumed";
  }
  return "?";
}

double Profile::at(std::string_view key) const {
  const auto found = constants.find(key);
  if (found == constants.end()) throw std::out_of_range("profile " + name + " has no constant " + std::string(key));
  return found->second.value;
}

}  // namespace stepcast::hw
