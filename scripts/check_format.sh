#!/usr/bin/env bash
# Lists the C++ files of the tree that clang-format 14 would change, and fails if there is one. `make format` repairs them.
set -euo pipefail
cd "$(dirname "$0")/.."
output=$(git ls-files -z -co --exclude-standard '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs -0 -r -n 20 -P 2 clang-format-14 --dry-run -Werror --ferror-limit=1 2>&1) && exit 0
printf '%s\n' "$output" | sed -n 's/^\([^ ]*\): error: code should be clang-formatted.*/\1: not formatted; run make format/p' | sort
# Anything else that went wrong (no clang-format, an unreadable file) must be seen as well.
printf '%s\n' "$output" | grep -v 'clang-formatted' | grep -E '^[^ ]*(xargs|clang-format|[Ee]rror)' || true
exit 1
