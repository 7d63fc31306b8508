#!/usr/bin/env bash
# All checks that need no build: self-tests of the checkers, layers, words, format. Usage: scripts/check.sh
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
failed=0
for step in "check_layers.py --self-test" "check_words.py --self-test" check_layers.py check_words.py check_format.sh; do
  # shellcheck disable=SC2086  # the step carries its argument
  scripts/$step || {
    echo "check failed: $step" >&2
    failed=1
  }
done
exit $failed
