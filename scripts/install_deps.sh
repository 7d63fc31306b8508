#!/usr/bin/env bash
# Installs what is missing to build, or says exactly what that is. Quick when nothing is missing.
# Usage: scripts/install_deps.sh [build|bench|ci]. Exit code 2: something is missing and can't be installed from here.
# Node.js and npm make the pages, Boost's headers the server of `stepcast serve`; a build does without them, so that their absence is one line and no failure.
# STEPCAST_WEB=OFF, STEPCAST_SERVE=OFF: they aren't looked for.
set -euo pipefail

build_packages=(g++ cmake ninja-build nlohmann-json3-dev libcli11-dev libfmt-dev libeigen3-dev zlib1g-dev libyaml-cpp-dev libtoml11-dev doctest-dev ccache)
bench_packages=("${build_packages[@]}" libbenchmark-dev)
ci_packages=("${bench_packages[@]}" clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev pybind11-dev python3-dev python3 libopenmpi-dev openmpi-bin)
optional=()
if [[ ${STEPCAST_WEB:-AUTO} != OFF ]]; then
  { command -v node && command -v npm; } >/dev/null || optional+=(nodejs npm)
  # The tests of the page look at it in a browser.
  [[ ${1:-build} != ci ]] || command -v chromium >/dev/null || optional+=(chromium)
fi
[[ ${STEPCAST_SERVE:-AUTO} == OFF || -e /usr/include/boost/beast/http.hpp ]] || optional+=(libboost-dev)

case "${1:-build}" in
  build) packages=("${build_packages[@]}") ;;
  bench) packages=("${bench_packages[@]}") ;;
  ci) packages=("${ci_packages[@]}") ;;
  *)
    echo "usage: $0 [build|bench|ci]" >&2
    exit 2
    ;;
esac

# Other systems name their packages otherwise, so only the tools and headers themselves are looked for.
check_without_packages() {
  local tool header missing=()
  for tool in c++ cmake ninja; do command -v "$tool" >/dev/null || missing+=("$tool"); done
  for header in nlohmann/json.hpp CLI/CLI.hpp fmt/core.h eigen3/Eigen/Core zlib.h yaml-cpp/yaml.h toml.hpp doctest/doctest.h; do
    printf '#include <%s>\n' "$header" | c++ -std=c++20 -E -x c++ - >/dev/null 2>&1 || missing+=("<$header>")
  done
  ((${#missing[@]} == 0)) && exit 0
  echo "missing: ${missing[*]}" >&2
  echo "This is not Debian or Ubuntu. Please install what Debian calls: ${packages[*]}" >&2
  exit 2
}
command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || check_without_packages

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  [[ ${status:1:1} == i ]] || missing+=("$package")
done
((${#missing[@]} + ${#optional[@]} == 0)) && exit 0

echo "installing: ${missing[*]} ${optional[*]}" >&2
as_root=()
if ((EUID != 0)); then
  if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
    as_root=(sudo env DEBIAN_FRONTEND=noninteractive)
  elif ((${#missing[@]} == 0)); then
    echo "no ${optional[*]}: no report page, no stepcast serve, or no test of them. As root: apt-get install --no-install-recommends ${optional[*]}" >&2
    exit 0
  else
    echo "missing packages, and neither root nor sudo to install them. As root: apt-get install --no-install-recommends ${missing[*]} ${optional[*]}" >&2
    exit 2
  fi
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { "${as_root[@]}" apt-get -qq -o Dpkg::Use-Pty=0 "$@" </dev/null >>"$log" 2>&1; }
install() { (($# == 0)) || apt -y --no-install-recommends install "$@"; }
# The package lists may be absent (a fresh container) or old: refresh them, unless the first try succeeds.
install "${missing[@]}" "${optional[@]}" && exit 0
apt update || true
install "${missing[@]}" || {
  tail -n 20 "$log" >&2
  echo "apt-get could not install: ${missing[*]}" >&2
  exit 2
}
install "${optional[@]}" || echo "apt-get could not install ${optional[*]}: no report page, no stepcast serve, or no test of them" >&2
