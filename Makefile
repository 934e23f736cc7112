# A thin front of the CMake presets. `make demo` and `make test` install what is missing, build and run.
.PHONY: configured demo test python test-python test-peers bench bench-python figures bench-sparse bench-built instructions format lint install clean
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

# An environment of its own for other packages, those that the file PEERS names, and for the wheel.
.PHONY: .venv-peers
.venv-peers: python
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install -q --disable-pip-version-check -r $(PEERS)
	.venv-peers/bin/python -m pip install -q --disable-pip-version-check --no-deps --force-reinstall build/wheel/*.whl

# The compat modules held against the systems that they stand for, in .venv-peers.
test-peers: PEERS := tests/peers/requirements.txt
test-peers: .venv-peers
	.venv-peers/bin/python -m pytest tests/peers --durations=5

# The Python functions beside other packages: a table, bench/python.json and bench/python.svg.
bench-python: PEERS := benchmarks/python-requirements.txt
bench-python: .venv-peers
	.venv-peers/bin/python benchmarks/python_bench.py

# cenote, a copy and the peers that are installed, in one run. BENCH_ARGS says what else: `benchmarks/bench.py --help`.
BENCH_ARGS ?= --list benchmarks/quick.txt --json build/bench/results.json --plots build/bench
bench: bench-built
	$(PYTHON) benchmarks/bench.py $(BENCH_ARGS)

# The pictures and the table of the documentation, measured anew.
figures: bench-built
	$(PYTHON) benchmarks/bench.py --list benchmarks/quick.txt --list benchmarks/windows.txt --json build/bench/results.json \
	  --plots docs --page docs/performance.md

bench-sparse: configured
	cmake --build --preset release --target cenote_cli -j $(JOBS)
	build/release/bin/cenote sparse-bench --voxels 10000,1000000 --channels 1,64

# Peers are optional: what cannot be installed is a note. `scripts/setup.sh torch` adds libtorch, which is large.
bench-built: configured
	scripts/setup.sh bench || echo "make bench: without the peers that are not installed"
	test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench || echo "make bench: without Python's peers"
	sed 's/#.*//; /^ *$$/d' benchmarks/requirements.txt | while read -r package; do \
	  .venv-bench/bin/python -m pip install -q --disable-pip-version-check "$$package" || \
	  echo "make bench: without $$package"; done
	cmake --preset release -DCENOTE_PEERS=ON
	cmake --build --preset release --target cenote_cli bench_peers -j $(JOBS)

# Instruction counts, compared with those of benchmarks/instructions.txt; a guard that noise does not touch.
instructions: configured
	scripts/setup.sh bench
	cmake --build --preset release --target cenote_cli -j $(JOBS)
	scripts/instructions.sh

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
	rm -rf build .venv .venv-peers .venv-bench
