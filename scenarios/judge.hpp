// Throws at a field of a scenario that breaks a rule; carries the way from pointers to files. Private to this folder.
#pragma once

#include <string>

#include "hw_models/input_error.hpp"
#include "hw_models/strict_json.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::scenarios {

class Judge {
 public:
  explicit Judge(const Reader::Origin& origin) : origin_(origin) {}
  void require(bool holds, const char* pointer, const std::string& what, const std::string& hint = "") const {
    if (!holds) throw InputError(origin_(pointer), pointer, what, hint);
  }

 private:
  const Reader::Origin& origin_;
};

/// Rules of loader, host pauses, jitter and slow ranks.
void validate_variation(const Scenario& scenario, const Judge& judge);

}  // namespace stepcast::scenarios
