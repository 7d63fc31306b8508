#!/usr/bin/env python3
"""Lines of the CUDA driver that its tests run on fakes, by gcov. Usage: coverage.py BUILD

BUILD is configured with -DSTEPCAST_COVERAGE=ON (GCC) and test_cuda built and run there. Exit code 1 if less than 85 % of the host code's lines were run.
"""
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DRIVER = ROOT / "real_backend" / "cuda"
WANTED = 0.85


def lines_of(build):
    """{file of the driver: {line: was it run}}, over all object files that have counts."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        counts = [str(path.resolve()) for path in Path(build).rglob("*.gcda")]
        if not counts:
            sys.exit(f"{build}: no counts: build with -DSTEPCAST_COVERAGE=ON and run test_cuda")
        subprocess.run(["gcov", "--json-format", *counts], cwd=folder, check=True, capture_output=True)
        for result in Path(folder).glob("*.gcov.json.gz"):
            data = json.loads(gzip.decompress(result.read_bytes()))
            for file in data["files"]:
                path = Path(data["current_working_directory"], file["file"]).resolve()
                if path.is_relative_to(DRIVER):
                    lines = found.setdefault(path.relative_to(ROOT), {})
                    for line in file["lines"]:
                        lines[line["line_number"]] = lines.get(line["line_number"], False) or line["count"] > 0
    return found


def share(lines):
    return sum(lines.values()), len(lines)


def main():
    found = lines_of(sys.argv[1])
    totals = {"host code": [0, 0], "kernels": [0, 0]}
    for path, lines in sorted(found.items()):
        run, count = share(lines)
        total = totals["kernels" if path.suffix in {".cu", ".cuh"} else "host code"]
        total[0] += run
        total[1] += count
        missed = ", ".join(str(number) for number, was_run in sorted(lines.items()) if not was_run)
        print(f"{100 * run / count:5.1f} %  {run:4d} of {count:4d}  {path}" + (f"  not run: {missed}" if missed else ""))
    for name, (run, count) in totals.items():
        print(f"{100 * run / count:5.1f} %  {run:4d} of {count:4d}  {name}")
    run, count = totals["host code"]
    return 0 if run >= WANTED * count else 1


if __name__ == "__main__":
    sys.exit(main())
