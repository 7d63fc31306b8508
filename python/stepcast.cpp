// The Python module's C++ half: the commands run, sweep and diagnose, which take texts and return JSON. python/stepcast/__init__.py makes dicts of it.
// docs/python.md; test: tests/python/test_stepcast.py.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "cli/diagnose/run.hpp"
#include "cli/load.hpp"
#include "cli/out_of_memory.hpp"
#include "cli/predict.hpp"
#include "cli/report/explain.hpp"
#include "cli/sweep/json.hpp"
#include "cli/sweep/run.hpp"
#include "hw_models/input_error.hpp"

namespace {

namespace cli = stepcast::cli;
using Texts = std::vector<std::string>;

/// A scenario's path or name, its text where it was a dict, or a model, configurations and a cluster.
struct Choice {
  std::string scenario, text, model, cluster;
  Texts configs, sets;
};

stepcast::scenarios::ScenarioTemplate template_of(const Choice& choice) {
  if (!choice.text.empty()) return {choice.text, "scenario", choice.sets};
  cli::ScenarioChoice chosen;
  chosen.scenario = choice.scenario;
  chosen.model = choice.model;
  chosen.cluster = choice.cluster;
  chosen.configs = choice.configs;
  chosen.changes.sets = choice.sets;
  return cli::load_template(chosen).scenario;
}

std::string run(const Choice& choice, bool explain) {
  cli::Prediction prediction = cli::predict(template_of(choice).with({}));
  if (prediction.report.outcome == "out_of_memory") prediction.report.out_of_memory.remedies = cli::remedies(prediction.scenario);
  nlohmann::ordered_json json = cli::json_of(prediction);
  if (explain && prediction.report.outcome == "ok") json["explain"] = cli::to_json(cli::explain(prediction));
  return json.dump();
}

Texts sweep(const Choice& choice, const Texts& vary, unsigned threads) {
  std::vector<stepcast::planner::Axis> axes;
  for (const std::string& axis : vary) axes.push_back(stepcast::planner::parse_axis(axis));
  const stepcast::planner::Grid grid(std::move(axes));
  const auto scenario = template_of(choice);
  const unsigned used = threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  const cli::SweepPlan plan = cli::make_plan(scenario, grid, used);
  cli::SweepStore store;
  cli::run_sweep({scenario, grid, plan, used}, store);
  Texts points;
  for (std::size_t i = 0; i < grid.size(); ++i) points.push_back(cli::point_json(grid, plan, store, i));
  return points;
}

std::string diagnose(const Texts& traces, const std::string& model) {
  cli::InferenceOptions inference;
  inference.model = model;
  return cli::diagnose_traces(traces, inference, {.json = true}).json;
}

}  // namespace

PYBIND11_MODULE(_stepcast, module) {
  namespace py = pybind11;
  module.doc() = "Forecasts of sharded transformer training; use the package stepcast.";
  py::register_exception<stepcast::InputError>(module, "InputError", PyExc_ValueError);
  py::class_<Choice>(module, "Choice")
      .def(py::init([](std::string scenario, std::string text, std::string model, std::string cluster, Texts configs, Texts sets) {
        return Choice{std::move(scenario), std::move(text), std::move(model), std::move(cluster), std::move(configs), std::move(sets)};
      }));
  module.def("run", &run, py::call_guard<py::gil_scoped_release>());
  module.def("sweep", &sweep, py::call_guard<py::gil_scoped_release>());
  module.def("diagnose", &diagnose, py::call_guard<py::gil_scoped_release>());
}
