// A scenario that is read once and varied gives what reading each variant gives.
#include <doctest/doctest.h>

#include "hw_models/input_error.hpp"
#include "scenarios/scenario_template.hpp"

using namespace stepcast;
using Texts = std::vector<std::string>;

TEST_CASE("a variant of a template is the scenario read with the same sets, defaults that depend on others included") {
  const Texts first = {"/batch/micro_batch=2"};
  const scenarios::ScenarioTemplate base("7b-32xa100", first);
  for (const Texts& sets :
       {Texts{}, Texts{"/policy/framework=zero3"}, Texts{"/batch/micro_batch=4", "/cluster/nodes=2"}, Texts{"/policy/release=before-2.1"}}) {
    Texts all = first;
    all.insert(all.end(), sets.begin(), sets.end());
    CHECK(base.with(sets) == scenarios::read_scenario("7b-32xa100", all));
  }
  CHECK(base.with({}) == scenarios::read_scenario("7b-32xa100", first));  // variants leave no trace
}

TEST_CASE("a variant that is refused names --set, and a template of a bad text is refused") {
  const scenarios::ScenarioTemplate base("7b-32xa100");
  CHECK_THROWS_AS(base.with(Texts{"/batch/micro_batch=0"}), InputError);
  CHECK_THROWS_AS(base.with(Texts{"/no/such=1"}), InputError);
  CHECK_THROWS_AS(scenarios::ScenarioTemplate("{", "bad.json"), InputError);
}
