#!/usr/bin/env bash
# Runs every benchmark of a folder and keeps the JSON beside it. Usage: scripts/run_benchmarks.sh FOLDER
set -euo pipefail
shopt -s nullglob
programs=("$1"/bench_*)
found=0
for program in "${programs[@]}"; do
  [[ -x $program && $program != *.json ]] || continue
  found=1
  "$program" --benchmark_out="$program.json" --benchmark_out_format=json
done
((found)) || {
  echo "there is no benchmark in $1" >&2
  exit 1
}
