#!/usr/bin/env bash
# Fails if clang-format 14 would change a C++ file of the tree. `make format` repairs it.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files -z -co --exclude-standard '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs -0 -r -n 40 -P 2 clang-format-14 --dry-run -Werror --ferror-limit=3
