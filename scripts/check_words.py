#!/usr/bin/env python3
"""Checks the text of the tree: no unfinished work, no paths of somebody's machine, a first comment in each source, no using-declaration without a use. Usage: check_words.py [ROOT] | --self-test

Exit code 1 and one line per finding: FILE:LINE: what. Long files are only reported.
"""
import re
import subprocess
import sys
from pathlib import Path

TEXT = {".cpp", ".hpp", ".cu", ".cuh", ".md", ".cmake", ".py", ".sh", ".json", ".txt", ".yml", ""}
SOURCES = {".cpp", ".hpp", ".cu", ".cuh"}
# Inputs and expected outputs of tests are whatever they are; this file spells the patterns.
SKIPPED = re.compile(r"^(tests/(.*/)?(data|corpus|golden)/|scripts/check_words\.py$|LICENSE$)")
LONG_FILE = 450

RULES = [
    (re.compile(r"/work/|/home/\w|/root/"), "a path of one machine"),
    (re.compile(r"\b(TODO|FIXME|XXX)\b"), "unfinished work: finish it or write down the limit"),
    (re.compile(r"\bplaceholder\b", re.I), "unfinished work: finish it or write down the limit"),
    (re.compile(r"(?<![\w.-]/)(?<!nccl )(?<!pytorch )(?<!apex )\bissue\s+#?\d+", re.I), "a reference to a tracker: say what was wrong instead"),
    (re.compile(r"(?<!profiling )(?<!profiler )(?<!training )\bsessions?\b", re.I), "the tree speaks of the product, not of how it was made"),
    (re.compile(r"\b(a|the|this|another|our|by|from) helpers?\b(?! (function|kernel|thread|class|script|target|process))", re.I),
     "the tree speaks of the product, not of how it was made"),
    (re.compile(r"\bpilots?\b", re.I), "the tree speaks of the product, not of how it was made"),
]
# Only tests may look for files that lie beside the repository.
# A test that a comment or a page names.
NAMED_TEST = re.compile(r"\btests/[\w/]+\.(?:cpp|hpp|json|txt)\b")
# `using a::B, c::d;`, not `using namespace` or an alias. clang-tidy's own check looks at no file that another one includes, as unity builds do.
USING = re.compile(r"^ *using ((?:\w+::)+\w+(?:,\s*(?:\w+::)+\w+)*);", re.M)
OUTSIDE = re.compile(r"(\.\./|\b(in|from|see) )shared/|\bshared/(specs|measured|micro|seeds|reference|traces|cases|configs)\b")


def unused_usings(text):
    """(line, name) of using-declarations whose name does not occur again."""
    for declaration in USING.finditer(text):
        rest = text[: declaration.start()] + text[declaration.end() :]
        for name in re.findall(r"(\w+)(?=,|$)", declaration[1]):
            if not re.search(rf"(?<!::)\b{name}\b", rest):
                yield text.count("\n", 0, declaration.start()) + 1, name


def findings(name, text, known):
    """(line, what) of everything wrong with the text of one file; `known`: whether a path of the tree exists."""
    suffix = Path(name).suffix
    lines = text.splitlines()
    if suffix in SOURCES and not (lines and lines[0].startswith("//")):
        yield 1, "begin with a comment: what the file is, its document, its test"
    if suffix in {".cpp", ".cu"}:
        yield from ((line, f"using-declaration without a use: {name}") for line, name in unused_usings(text))
    for number, line in enumerate(lines, 1):
        for pattern, what in RULES:
            if pattern.search(line):
                yield number, f"{what}: {line.strip()[:100]}"
        for test in NAMED_TEST.findall(line):
            if suffix != ".py" and not known(test):
                yield number, f"names a test that is not there: {test}"
        if not name.startswith("tests/") and OUTSIDE.search(line):
            yield number, f"a file outside the repository: {line.strip()[:100]}"


def tree(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"], check=True, capture_output=True).stdout
    for name in sorted(set(listed.decode().split("\0")) - {""}):
        path = root / name
        if path.suffix in TEXT and not SKIPPED.search(name) and path.is_file():
            yield name, path.read_text(encoding="utf-8", errors="replace")


def self_test():
    clean = [("docs/a.md", "NVIDIA/nccl issue 1428\n"), ("sim/a.cpp", "// A.\nint a;  // shared memory, a helper kernel, issue order, profiling session\n"), ("docs/a.md", "The issues of a step\n"),
             ("sim/a.cpp", "// A.\nusing a::B, a::c::D;\nB f(D);\n"),
             ("tests/unit/a_test.cpp", '// A. Test: tests/unit/a_test.cpp.\nconst char* path = "/../shared/measured/x.csv";\n')]
    bad = [("sim/a.cpp", "int a;\n"), ("sim/a.cpp", "// A.\n// TODO b\n"), ("docs/a.md", "see /work/x\n"), ("docs/a.md", "as Issue 12 says\n"),
           ("docs/a.md", "found in a session\n"), ("docs/a.md", "written by a helper\n"), ("docs/a.md", "from ../shared/measured/x.csv\n"),
           ("sim/a.cpp", "// A. Test: tests/unit/none_test.cpp.\n"), ("scenarios/data/a.json", '{"why": "placeholder"}\n'), ("docs/a.md", "the time pilot\n"),
           ("sim/a.cpp", "// A.\nusing a::B, a::c::D;\nB f(a::D);\n")]
    known = lambda path: path == "tests/unit/a_test.cpp"
    wrong = [text for name, text in clean if list(findings(name, text, known))] + [text for name, text in bad if len(list(findings(name, text, known))) != 1]
    for text in wrong:
        print(f"self-test failed on: {text!r}")
    if not wrong:
        print(f"self-test: {len(bad)} planted findings found, {len(clean)} clean texts passed")
    return 1 if wrong else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    count = 0
    for name, text in tree(root):
        for line, what in findings(name, text, lambda path: (root / path).exists()):
            print(f"{name}:{line}: {what}")
            count += 1
        if Path(name).suffix in SOURCES | {".py"} and text.count("\n") > LONG_FILE:
            print(f"note: {name} has {text.count(chr(10))} lines; past {LONG_FILE} a reason is due")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
