// Reports of the 7B scenario with settings changed, for tests of general statements about training runs.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/forecast.hpp"

namespace stepcast::test {

using Sets = std::vector<std::string>;

inline Sets with(Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

/// Llama-2-7B on 4 x 8 A100-80GB, 2 sequences of 4096, if nothing else is set; three steps.
inline cli::Report report_of(const Sets& sets) { return forecast("7b-32xa100", with({"/run/steps=3"}, sets)).report; }

}  // namespace stepcast::test
