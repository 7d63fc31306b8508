#!/usr/bin/env python3
"""clang-tidy 14 (.clang-tidy) over the rooms. Usage: tidy.py [FILE...]; without files, every .cpp of the rooms; needs build/tidy configured.

The build is a unity build: most of the time goes into headers, which eight sources share so. A unity that passed is not looked at again until its preprocessed
text, its flags or the list of checks change (cache: $XDG_CACHE_HOME/stepcast-tidy).
Exit code 1 if a check fails.
"""
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "tidy"
INCLUDED = re.compile(r'^#include "(.*)"$', re.M)
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stepcast-tidy"


def compile_arguments(entry):
    """The compiler call of compile_commands.json without ccache, -c, -o and the dependency file."""
    words = shlex.split(entry["command"])
    while "clang" not in Path(words[0]).name:
        words.pop(0)
    kept, skip = [], False
    for word in words:
        if skip or word in {"-c", "-MD"}:
            skip = False
        elif word in {"-o", "-MT", "-MF"}:
            skip = True
        else:
            kept.append(word)
    return kept


def sources(entry):
    """The files of the tree behind an entry: its own, or those that a unity includes; none for generated files."""
    file = Path(entry["file"])
    if not file.is_relative_to(BUILD):
        return {str(file)}
    return set(INCLUDED.findall(file.read_text(encoding="utf-8"))) if file.parent.name == "Unity" else set()


def key(entry):
    words = compile_arguments(entry)
    text = subprocess.run([*words, "-E", "-P"], cwd=entry["directory"], capture_output=True, check=True).stdout
    checks = (ROOT / ".clang-tidy").read_bytes()
    flags = " ".join(words).replace(str(ROOT), "").encode()
    return hashlib.sha256(b"clang-tidy-14\0" + checks + b"\0" + flags + b"\0" + text.replace(str(ROOT).encode(), b"")).hexdigest()


def tidy(entry):
    """Output of clang-tidy, empty if the file passes."""
    try:
        mark = CACHE / key(entry)
    except subprocess.CalledProcessError as error:
        return error.stderr.decode(errors="replace")
    if mark.exists():
        return ""
    run = subprocess.run(["clang-tidy-14", "--quiet", "-p", str(BUILD), entry["file"]], capture_output=True, text=True, check=False)
    if run.returncode == 0:
        mark.touch()
        return ""
    return run.stdout + "\n".join(line for line in run.stderr.splitlines() if "warnings generated" not in line)


def main():
    wanted = {str(Path(name).resolve()) for name in sys.argv[1:]}
    entries = json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))
    entries = [e for e in entries if (sources(e) & wanted if wanted else sources(e))]
    if not entries:
        print("no file to check")
        return 1
    CACHE.mkdir(parents=True, exist_ok=True)
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for entry, output in zip(entries, pool.map(tidy, entries)):
            if output:
                failed += 1
                print(f"--- {Path(entry['file']).relative_to(ROOT)}\n{output}", flush=True)
    print(f"clang-tidy: {sum(len(sources(e)) for e in entries)} files in {len(entries)} units, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
