#!/usr/bin/env bash
# Configures a preset and shows CMake's output only when it fails or says something that matters. Usage: scripts/configure.sh PRESET [-DNAME=VALUE ...]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
mkdir -p "build/$preset"
log=build/$preset/configure.log
if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
grep -E "^-- (CUDA|Report page):|Warning|^-- Build files" "$log" || true
