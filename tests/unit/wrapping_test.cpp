// Which modules are FSDP units: order of gathers and reductions for units of embedding and head, for the whole model as one unit, and for units by size.
#include <doctest/doctest.h>

#include "hw_models/input_error.hpp"
#include "program/build.hpp"
#include "program/check.hpp"
#include "program/units.hpp"
#include "tests/support/schedule.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using Words = std::vector<std::string>;

Words collectives(const StepSpec& spec) {
  const Program p = build_program(spec, 2);
  return test::words(p, p.steps[1], {OpKind::collective});
}

StepSpec wrapped(Wrap wrap, std::int64_t layers) {
  StepSpec spec = test::fixed_step(layers);
  spec.policy.wrap = wrap;
  return spec;
}

TEST_CASE("embedding and head of their own: nothing is left for the root, and both are gathered twice and reduced with their own backward") {
  const StepSpec spec = wrapped(Wrap::embedding_and_head, 2);
  CHECK(collectives(spec) == Words{"AG embedding", "AG b0", "AG b1", "AG head",  // forward
                                   "AG head", "AG b1", "RS head", "AG b0", "RS b1", "AG embedding", "RS b0", "RS embedding"});
  Builder builder;
  const std::vector<Unit> units = make_units(spec, builder);
  REQUIRE(units.size() == 4);
  CHECK(units[0].flat.elements == 32000 * 4096);
  CHECK(units[3].flat.elements == 32000 * 4096 + 4096);  // head and final norm
  StepSpec tied = wrapped(Wrap::embedding_and_head, 2);
  tied.model.tied_embeddings = true;
  CHECK_THROWS_AS(build_program(tied, 1), InputError);
}

TEST_CASE("the whole model as one unit: one gather at the start, one reduction at the end") {
  const StepSpec spec = wrapped(Wrap::model, 4);
  CHECK(collectives(spec) == Words{"AG root", "RS root"});
  Builder builder;
  const std::vector<Unit> units = make_units(spec, builder);
  REQUIRE(units.size() == 1);
  CHECK(units[0].flat.elements == parameters(spec.model));
  CHECK(units[0].tensors == 4 * 9 + 3);
  CHECK(units[0].parameters == parameters(spec.model));
}

TEST_CASE("by size: blocks of 202,383,360 parameters joined until a unit has enough") {
  StepSpec spec = wrapped(Wrap::size_based, 10);
  const auto sizes = [&](std::int64_t least) {
    spec.policy.min_unit_parameters = least;
    Builder builder;
    std::vector<std::int64_t> result;
    for (const Unit& unit : make_units(spec, builder)) result.push_back(unit.block_count);
    return result;
  };
  CHECK(sizes(100'000'000) == std::vector<std::int64_t>{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0});
  CHECK(sizes(202'383'360).size() == 11);
  CHECK(sizes(202'383'361) == std::vector<std::int64_t>{2, 2, 2, 2, 2, 0});
  CHECK(sizes(800'000'000) == std::vector<std::int64_t>{4, 4, 2, 0});
  CHECK(sizes(std::int64_t{1} << 49) == std::vector<std::int64_t>{10, 0});
}

TEST_CASE("each way of wrapping is proven clean kernel by kernel") {
  for (const Wrap wrap : {Wrap::embedding_and_head, Wrap::model, Wrap::size_based}) {
    StepSpec spec = test::reference_step();
    spec.model.layers = 3;
    spec.policy.wrap = wrap;
    spec.policy.min_unit_parameters = 300'000'000;
    const auto findings = check(build_program(spec, 3));
    CHECK_MESSAGE(findings.empty(), (findings.empty() ? "" : findings.front().text));
  }
}

}  // namespace
}  // namespace stepcast::program
