#!/usr/bin/env bash
# Takes the pictures of README and docs (docs/images) from pages that a build of stepcast writes, in headless Chromium. With a table of runs also that of validate.
# Usage: scripts/pictures.sh BUILD [RUNS.CSV], e.g. scripts/pictures.sh build/release
set -euo pipefail
if (($# < 1)); then
  sed -n '3s/^# //p' "$0" >&2
  exit 2
fi
build=$(realpath "$1")
runs=${2:+$(realpath "$2")}
root=$(cd "$(dirname "$0")/.." && pwd)
export STEPCAST_BINARY=$build/stepcast STEPCAST_NODE_MODULES=$build/web/node_modules STEPCAST_PAGE_TEMPLATE=$build/web/report.html
exec node "$root/web/tests/pictures.mjs" "$root/docs/images" ${runs:+"$runs"}
