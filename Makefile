# The everyday commands; each installs what is missing first (scripts/install_deps.sh). Presets for everything else: CMakePresets.json.
.PHONY: help build demo test bench format check ci clean
.DEFAULT_GOAL := help
JOBS ?= $(shell nproc)
# More -D for CMake; CI makes warnings errors.
CONFIGURE ?=

help:
	@echo "make build    build/release/stepcast"
	@echo "make demo     build, then forecast the case study (7B on 32 A100)"
	@echo "make test     build everything and run all tests"
	@echo "make bench    build and run the benchmarks"
	@echo "make format   format all C++ files"
	@echo "make check    format, layer and word checks, without building"
	@echo "make ci       what CI runs (.ci/run)"
	@echo "make clean    remove build/"

build:
	@scripts/install_deps.sh build
	@scripts/configure.sh release $(CONFIGURE)
	@cmake --build build/release --parallel $(JOBS) --target stepcast

demo: build
	@./build/release/stepcast demo

test:
	@scripts/install_deps.sh build
	@scripts/configure.sh release $(CONFIGURE)
	@cmake --build build/release --parallel $(JOBS)
	@ctest --test-dir build/release --output-on-failure --no-tests=error --parallel $(JOBS)

bench:
	@scripts/install_deps.sh bench
	@scripts/configure.sh release -DSTEPCAST_BENCHMARKS=ON $(CONFIGURE)
	@cmake --build build/release --parallel $(JOBS) --target stepcast_benchmarks
	@scripts/run_benchmarks.sh build/release/bench

format:
	@git ls-files -co --exclude-standard '*.cpp' '*.hpp' '*.cu' | xargs clang-format-14 -i

check:
	@scripts/check.sh

ci:
	@.ci/run

clean:
	rm -rf build
