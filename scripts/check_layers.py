#!/usr/bin/env python3
"""Checks every #include "room/..." against the layers of docs/design.md. Usage: check_layers.py [ROOT] | --self-test

Exit code 1 and one line per violation: FILE:LINE: what.
"""
import re
import sys
import tempfile
from pathlib import Path

# Headers of hw_models that say what things are, not what they cost. Rooms marked VOCABULARY may include these alone.
VOCABULARY = "vocabulary"
VOCABULARY_HEADERS = {
    "units.hpp", "sim_time.hpp", "kernel.hpp", "memory_class_names.hpp", "hardware.hpp", "input_error.hpp", "embedded.hpp", "text_units.hpp", "strict_json.hpp", "text_file.hpp",
}
EVERYTHING = "everything"

# room -> what it may include besides itself
LAYERS = {
    "hw_models": {},
    "trace": {"hw_models": VOCABULARY},
    "program": {"hw_models": VOCABULARY},
    "memory": {"hw_models": VOCABULARY},
    "sim": {"program": EVERYTHING, "trace": EVERYTHING, "memory": EVERYTHING, "hw_models": EVERYTHING},
    # Measurement stays independent of prediction: no cost model here.
    "real_backend": {"program": EVERYTHING, "trace": EVERYTHING, "memory": EVERYTHING, "hw_models": VOCABULARY},
    "calibration": {"hw_models": EVERYTHING, "trace": EVERYTHING},
    "scenarios": {"program": EVERYTHING, "hw_models": EVERYTHING},
    "planner": {"sim": EVERYTHING, "scenarios": EVERYTHING, "program": EVERYTHING, "hw_models": EVERYTHING},
}
ROOMS = set(LAYERS) | {"cli", "python", "tests"}
FREE = {"cli", "python", "tests"}  # may include every room

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def violation(room, path, target, root):
    """What is wrong with file `path` of a room including "target", or None."""
    parts = target.split("/")
    if room == "tests" and ((root / "tests" / target).is_file() or (path.parent / target).is_file()):
        return None  # the tests' own support files
    if len(parts) < 2 or parts[0] not in ROOMS:
        return f'"{target}": write the path from the root, "room/file.hpp"'
    if not (root / target).is_file():
        return f'"{target}": no such file'
    other = parts[0]
    if other == room or room in FREE:
        return None
    allowed = LAYERS[room].get(other)
    if allowed is None:
        return f'{room} must not include {other} ("{target}")'
    if allowed == VOCABULARY and "/".join(parts[1:]) not in VOCABULARY_HEADERS:
        return f'{room} may use only the vocabulary of {other}, no costs ("{target}")'
    return None


def source_files(root):
    for room in sorted(ROOMS):
        for path in sorted((root / room).rglob("*")):
            if path.suffix in {".hpp", ".cpp", ".cu", ".cuh"}:
                yield room, path


def check(root):
    found = []
    for room, path in source_files(root):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            wrong = match and violation(room, path, match.group(1), root)
            if wrong:
                found.append(f"{path.relative_to(root)}:{number}: {wrong}")
    return found


def self_test():
    """Plants one violation of each kind beside allowed includes, and expects exactly the violations."""
    planted = {
        "hw_models/units.hpp": [],
        "hw_models/cost_model.hpp": [("hw_models/units.hpp", False), ("trace/trace.hpp", True)],
        "trace/trace.hpp": [("hw_models/units.hpp", False), ("program/program.hpp", True)],
        "program/program.hpp": [("hw_models/units.hpp", False), ("hw_models/cost_model.hpp", True)],
        "memory/pool.hpp": [("sim/simulate.hpp", True)],
        "sim/simulate.hpp": [("hw_models/cost_model.hpp", False), ("memory/pool.hpp", False), ("cli/main.hpp", True)],
        "real_backend/cuda/run.cpp": [("program/program.hpp", False), ("hw_models/cost_model.hpp", True)],
        "calibration/fit.cpp": [("hw_models/cost_model.hpp", False), ("sim/simulate.hpp", True)],
        "scenarios/read.cpp": [("program/program.hpp", False), ("read.hpp", True), ("scenarios/absent.hpp", True)],
        "cli/main.hpp": [("sim/simulate.hpp", False)],
        "tests/support/y.hpp": [],
        "tests/unit/x_test.cpp": [("cli/main.hpp", False), ("support/y.hpp", False), ("absent.hpp", True)],
    }
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        expected = set()
        for name, includes in planted.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("".join(f'#include "{target}"\n' for target, _ in includes), encoding="utf-8")
            expected |= {f"{name}:{number}" for number, (_, wrong) in enumerate(includes, 1) if wrong}
        found = {":".join(line.split(":")[:2]) for line in check(root)}
    if found != expected:
        print(f"self-test failed: missed {sorted(expected - found)}, wrongly reported {sorted(found - expected)}")
        return 1
    print(f"self-test: all {len(expected)} planted violations found")
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    found = check(root)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
