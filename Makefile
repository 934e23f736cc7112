# A thin front of the CMake presets. `make demo` and `make test` install what is missing, build and run.
.PHONY: configured demo test python test-python test-peers bench bench-python format lint install clean
SHELL := /bin/bash
.DEFAULT_GOAL := demo

# Debian's compiler, unless CXX says otherwise.
ifeq ($(origin CXX),default)
  CXX := /usr/bin/g++
endif
export CXX
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
PYTHON ?= python3

# Without the tests at first, so that the demo needs no packages of theirs; `make test` turns them on.
configured:
	scripts/setup.sh build
	test -f build/release/build.ninja || cmake --preset release -DCENOTE_TESTS=OFF

demo: configured
	cmake --build --preset release --target cenote_cli -j $(JOBS)
	build/release/bin/cenote demo

test:
	scripts/setup.sh build test
	cmake --preset release -DCENOTE_TESTS=ON
	cmake --build --preset release -j $(JOBS)
	ctest --preset release -j $(JOBS)
	cmake --preset sanitize
	cmake --build --preset sanitize -j $(JOBS)
	ctest --preset sanitize -j $(JOBS)
	$(MAKE) test-python

# The package in .venv. The library is compiled as for `make test`, so that ccache serves both.
python:
	scripts/setup.sh build python
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	.venv/bin/python -m pip install -q --disable-pip-version-check -r python/requirements.txt
	rm -rf build/wheel
	.venv/bin/python -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w build/wheel \
	  --config-settings=cmake.define.CENOTE_WERROR=ON --config-settings=build.tool-args=-j$(JOBS) .
	.venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --force-reinstall build/wheel/*.whl

test-python: python
	.venv/bin/python -m pytest
	.venv/bin/python -m mypy

# An environment of its own for other packages, those that PEERS/requirements.txt names, and for the wheel.
.PHONY: .venv-peers
.venv-peers: python
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install -q --disable-pip-version-check -r $(PEERS)/requirements.txt
	.venv-peers/bin/python -m pip install -q --disable-pip-version-check --no-deps --force-reinstall build/wheel/*.whl

# The compat modules held against the systems that they stand for, in .venv-peers.
test-peers: PEERS := tests/peers
test-peers: .venv-peers
	.venv-peers/bin/python -m pytest tests/peers --durations=5

# The Python functions beside other packages: a table, bench/python.json and bench/python.svg.
bench-python: PEERS := benchmarks
bench-python: .venv-peers
	.venv-peers/bin/python benchmarks/python_bench.py

bench: configured
	cmake --build --preset release --target cenote_cli -j $(JOBS)
	build/release/bin/cenote bench --file benchmarks/problems.txt
	build/release/bin/cenote sparse-bench --voxels 10000,1000000 --channels 1,64

format:
	scripts/setup.sh test
	scripts/format.sh

lint: configured
	scripts/setup.sh lint
	scripts/lint.sh build/release

install: configured
	cmake --build --preset release --target cenote cenote_cli -j $(JOBS)
	cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build .venv .venv-peers
