#!/usr/bin/env bash
# Measures how soon the page of `stepcast serve` follows a slider, in headless Chromium (docs/serve.md, "Speed").
# Usage: scripts/measure_serve.sh BUILD [CHANGES [SCENARIO and options of serve]], e.g. scripts/measure_serve.sh build/release 400 01-baseline
set -euo pipefail
if (($# < 1)); then
  sed -n '3s/^# //p' "$0" >&2
  exit 2
fi
build=$(realpath "$1")
shift
root=$(cd "$(dirname "$0")/.." && pwd)
export STEPCAST_BINARY=$build/stepcast STEPCAST_NODE_MODULES=$build/web/node_modules STEPCAST_PAGE_TEMPLATE=$build/web/report.html
exec node "$root/web/tests/measure_serve.mjs" "$@"
