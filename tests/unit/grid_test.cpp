// Axes and grids of a sweep: lists, ranges, what is refused; sweep files. docs/sweep.md.
#include <doctest/doctest.h>

#include "hw_models/input_error.hpp"
#include "planner/grid.hpp"
#include "planner/sweep_file.hpp"

using namespace stepcast;
using planner::Axis, planner::Grid, planner::parse_axis;
using Texts = std::vector<std::string>;
using Axes = std::vector<Axis>;

TEST_CASE("an axis is a list, a range of steps or of factors, or several of them") {
  CHECK(parse_axis("/batch/micro_batch=1,2,4") == Axis{"/batch/micro_batch", {"1", "2", "4"}});
  CHECK(parse_axis("/a=1..4").values == Texts{"1", "2", "3", "4"});
  CHECK(parse_axis("/a=2..9:3").values == Texts{"2", "5", "8"});
  CHECK(parse_axis("/a=1..8:*2,12").values == Texts{"1", "2", "4", "8", "12"});
  CHECK(parse_axis("/a=0.1..0.3:0.1").values == Texts{"0.1", "0.2", "0.3"});
  CHECK(parse_axis("/cluster/nic_rate=100..200:50 Gb/s").values == Texts{"100 Gb/s", "150 Gb/s", "200 Gb/s"});
}

TEST_CASE("what is no range of numbers is a text, and commas inside quotes and brackets belong to their value") {
  CHECK(parse_axis("/cluster/node=../node.json").values == Texts{"../node.json"});
  CHECK(parse_axis("/a=1..x").values == Texts{"1..x"});
  CHECK(parse_axis(R"(/a="b,c",[1,2],{"x":1,"y":[2,3]})").values == Texts{"\"b,c\"", "[1,2]", R"({"x":1,"y":[2,3]})"});
  CHECK(parse_axis("/a=b=c").values == Texts{"b=c"});
}

TEST_CASE("a grid counts with its last axis fastest") {
  const Grid grid(Axes{{"/a", {"1", "2"}}, {"/b", {"x", "y", "z"}}});
  CHECK(grid.size() == 6);
  CHECK(grid.sets(0) == Texts{"/a=1", "/b=x"});
  CHECK(grid.sets(2) == Texts{"/a=1", "/b=z"});
  CHECK(grid.sets(5) == Texts{"/a=2", "/b=z"});
  CHECK(grid.indices(4) == std::vector<std::size_t>{1, 1});
}

TEST_CASE("axes and grids that make no sense are refused") {
  for (const char* text : {"", "a=1", "/a", "/a=", "/a=1,,2", "/a=4..1", "/a=1..4:0", "/a=1..4:-1", "/a=1..4:*1", "/a=0..4:*2", "/a=0..1e9"}) {
    CHECK_THROWS_AS(parse_axis(text), InputError);
  }
  CHECK_THROWS_AS(Grid(Axes{}), InputError);
  CHECK_THROWS_AS(Grid(Axes{{"/a", {}}}), InputError);
  CHECK_THROWS_AS(Grid(Axes{{"/a", {"1", "1"}}}), InputError);
  CHECK_THROWS_AS(Grid(Axes{{"/a", {"1"}}, {"/a", {"2"}}}), InputError);
  const Axis thousand = parse_axis("/a=1..1001");
  CHECK_THROWS_AS(Grid(Axes{thousand, {"/b", thousand.values}}), InputError);
}

TEST_CASE("a sweep file says what the command line says") {
  const auto sweep = planner::read_sweep(R"({"schema": "stepcast.sweep/1", "scenario": "7b-32xa100", "set": ["/run/steps=3"],
    "vary": [{"pointer": "/policy/release", "values": ["2.8", "2.1-2.7"]}, {"pointer": "/batch/micro_batch", "range": "1..4:*2"}]})",
                                         "s.json");
  CHECK(sweep.scenario == "7b-32xa100");
  CHECK(sweep.sets == Texts{"/run/steps=3"});
  CHECK(sweep.axes == std::vector<Axis>{{"/policy/release", {"\"2.8\"", "\"2.1-2.7\""}}, {"/batch/micro_batch", {"1", "2", "4"}}});
}

TEST_CASE("a sweep file is read strictly") {
  for (const char* text : {"[]", "{}", R"({"scenario": "a"})", R"({"scenario": "a", "vary": [{"pointer": "/a"}]})",
                           R"({"scenario": "a", "vary": [{"pointer": "a", "values": [1]}]})", R"({"scenario": "a", "vary": [{"pointer": "/a", "values": 1}]})",
                           R"({"scenario": "a", "vary": [{"pointer": "/a", "values": [1], "range": "1..2"}]})", R"({"scenario": "a", "vary": [], "very": []})",
                           R"({"schema": "stepcast.sweep/9", "scenario": "a", "vary": []})"}) {
    CHECK_THROWS_AS(planner::read_sweep(text, "s.json"), InputError);
  }
}
