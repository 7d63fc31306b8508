"""Forecasts step time, MFU and memory of sharded transformer training.

>>> import stepcast
>>> stepcast.run("7b-32xa100")["step_time_s"]

Everything that is wrong with an input is an InputError (a ValueError): one line with the file, the JSON pointer and a hint.
"""
import json as _json

from . import _stepcast
from ._stepcast import InputError

__all__ = ["InputError", "diagnose", "run", "sweep"]


def _value(value):
    """A value of a scenario as --set writes it: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else _json.dumps(value, allow_nan=False)


def _choice(scenario, model, cluster, configs, set):
    if (scenario is None) == (model is None and not configs):
        raise TypeError("give a scenario, or cluster with model or configs")
    text = "" if scenario is None or isinstance(scenario, str) else _json.dumps(scenario, allow_nan=False)
    name = scenario if isinstance(scenario, str) else ""
    sets = [f"{pointer}={_value(value)}" for pointer, value in (set or {}).items()]
    return _stepcast.Choice(name, text, model or "", cluster or "", list(configs), sets)


def run(scenario=None, *, model=None, cluster=None, configs=(), set=None, explain=False):
    """The report of `stepcast run --json` as a dict.

    scenario: path of a file, name of a built-in scenario, or a dict. Instead: model (path of a config.json or a built-in name) or configs (paths of
    configuration files), with cluster ("dgx-a100-4"). set: {"/batch/micro_batch": 4, ...}. explain: adds "explain", every loss between peak and MFU.
    A scenario that runs out of memory is a report too: see "outcome".
    """
    return _json.loads(_stepcast.run(_choice(scenario, model, cluster, configs, set), explain))


def sweep(scenario=None, *, vary, model=None, cluster=None, configs=(), set=None, threads=0):
    """All combinations of values: a list of {"set": {pointer: value}, "report": {...}} in the order of the grid, the last setting varying fastest.

    vary: {"/batch/micro_batch": [1, 2, 4], "/cluster/nodes": "1..16:*2"}: lists, or ranges as `stepcast sweep --vary` takes them. threads: 0 for all.
    """
    axes = []
    for pointer, values in vary.items():
        text = values if isinstance(values, str) else ",".join(_value(value) for value in values)
        axes.append(f"{pointer}={text}")
    return [_json.loads(point) for point in _stepcast.sweep(_choice(scenario, model, cluster, configs, set), axes, threads)]


def diagnose(*traces, model=None):
    """The diagnosis of `stepcast diagnose --json` as a dict: where the time of profiled steps went, per rank and across ranks, and findings.

    traces: paths of PyTorch profiler traces (.json, .json.gz, .zip, or folders of them), one file a rank. model: a config.json or a built-in name.
    """
    if not traces:
        raise TypeError("give a trace")
    return _json.loads(_stepcast.diagnose([str(trace) for trace in traces], model or ""))
